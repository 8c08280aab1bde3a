#pragma once
#include <bit>
#include <cstdint>

namespace troupe {

// 16-bit floating-point storage types; arithmetic is done in f32. Conversions round to nearest, ties to even,
// and keep NaN and infinity; they are branch-free, so that loops over them become vector code.

/// 8 bits of exponent, 7 of fraction: the upper half of an f32.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) {
    auto word = std::bit_cast<std::uint32_t>(value);
    auto rounded = static_cast<std::uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
    auto quiet = static_cast<std::uint16_t>((word >> 16) | 0x40);
    bits = (word & 0x7fffffff) > 0x7f800000 ? quiet : rounded;
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  bool operator==(const bfloat16&) const = default;  ///< compares bits: NaN equals itself, -0 and 0 differ
};

/// IEEE 754 binary16: 5 bits of exponent, 10 of fraction; the largest finite value is 65504.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  explicit float16(float value) {
    auto word = std::bit_cast<std::uint32_t>(value);
    auto sign = (word >> 16) & 0x8000;
    auto size = word & 0x7fffffff;
    // Exponents of normal numbers move by 112 (127 - 15), and 13 bits of fraction are rounded away.
    auto normal = (size - (112u << 23) + 0xfff + ((size >> 13) & 1)) >> 13;
    // Below 2^-14 the addition itself rounds to a multiple of 2^-24.
    auto small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000;
    auto magnitude = size < (113u << 23) ? small : normal;
    magnitude = size >= 0x477ff000 ? 0x7c00 : magnitude;  // 65520 and more
    magnitude = size > 0x7f800000 ? 0x7e00 : magnitude;
    bits = static_cast<std::uint16_t>(sign | magnitude);
  }
  explicit operator float() const {
    std::uint32_t sign = (std::uint32_t{bits} & 0x8000) << 16, rest = std::uint32_t{bits} & 0x7fff;
    auto normal = (rest << 13) + (112u << 23);
    auto special = (rest << 13) + (224u << 23);
    auto value = rest < 0x400 ? std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-24F) : normal;
    value = rest >= 0x7c00 ? special : value;
    return std::bit_cast<float>(sign | value);
  }
  bool operator==(const float16&) const = default;  ///< compares bits: NaN equals itself, -0 and 0 differ
};

}  // namespace troupe
