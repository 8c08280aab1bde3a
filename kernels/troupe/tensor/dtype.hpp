#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "troupe/tensor/half.hpp"

namespace troupe {

/// Element type. The numbers are part of the wire and snapshot formats: never reuse one. A boolean is one
/// byte, 0 or 1.
enum class dtype : std::uint8_t { f32 = 0, u8 = 1, i32 = 2, i64 = 3, bf16 = 4, f16 = 5, boolean = 6 };

std::size_t size_bytes(dtype type);
/// "f32", ..., "bool"
std::string_view to_string(dtype type);
/// Throws std::invalid_argument if `number` is no dtype of this version.
dtype dtype_from_number(std::uint8_t number);
/// f32, bf16 or f16.
constexpr bool is_floating(dtype type) {
  return type == dtype::f32 || type == dtype::bf16 || type == dtype::f16;
}

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr dtype value = dtype::u8;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr dtype value = dtype::i32;
};
template <>
struct dtype_of<std::int64_t> {
  static constexpr dtype value = dtype::i64;
};
template <>
struct dtype_of<bfloat16> {
  static constexpr dtype value = dtype::bf16;
};
template <>
struct dtype_of<float16> {
  static constexpr dtype value = dtype::f16;
};
template <>
struct dtype_of<bool> {
  static constexpr dtype value = dtype::boolean;
};

}  // namespace troupe
