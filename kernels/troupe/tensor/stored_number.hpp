#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "troupe/tensor/dtype.hpp"

namespace troupe {

/// A type that numbers have in files: those of tensors, and others that are converted when they are read.
/// Little-endian.
enum class stored_number : std::uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  bf16,
  f16,
  f32,
  f64
};

std::size_t size_bytes(stored_number type);
/// "f32", ..., "f64", "bool"
std::string to_string(stored_number type);
stored_number stored_as(dtype type);
/// The dtype of tensors with the same elements; none if tensors cannot have such elements.
std::optional<dtype> same_dtype(stored_number type);
/// A dtype for the values of `type`: that of the same elements if there is one. Else it is the smallest that
/// has all values (i32 for i8, u16 and i16, i64 for u32), or the nearest (f32 for f64, i64 for u64).
dtype usual_dtype(stored_number type);

/// Fills `to`, elements of `as`, with the numbers in `from`. Floating dtypes get the nearest value (16-bit
/// ones that of the f32); other dtypes only what they hold exactly. Throws bad_input with the element,
/// counted from `first`, for a value that an integer or boolean dtype cannot hold, a finite one that would
/// become infinite, and bytes other than 0 and 1 as booleans. Throws std::invalid_argument if the numbers of
/// elements differ.
void convert_numbers(std::span<const std::byte> from, stored_number type, std::span<std::byte> to, dtype as,
                     std::int64_t first = 0);

}  // namespace troupe
