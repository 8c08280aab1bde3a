#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

/// Element type. The numbers are part of the wire and snapshot formats: never reuse one.
enum class dtype : std::uint8_t { f32 = 0, u8 = 1, i32 = 2, i64 = 3 };

std::size_t size_bytes(dtype type);
std::string_view to_string(dtype type);
/// Throws std::invalid_argument if `number` is no dtype of this version.
dtype dtype_from_number(std::uint8_t number);

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

}  // namespace troupe
