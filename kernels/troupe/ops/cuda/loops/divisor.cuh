#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace troupe::cuda {

/// Divides numbers of type Number, std::int32_t or std::int64_t, by one that is fixed at launch. GPUs have no
/// instruction for divisions; a multiplication by the scaled reciprocal takes a fraction of the time
/// (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994, theorem 4.2).
template <std::signed_integral Number>
class divisor {
 public:
  /// value >= 1
  explicit divisor(Number value = 1)
      : shift_(std::bit_width(static_cast<word>(value - 1))), factor_(reciprocal(value, shift_)) {}

  /// n / value, rounded down; n >= 0.
  __device__ Number quotient(Number n) const {
    return static_cast<Number>(upper_half(factor_, 2 * static_cast<word>(n)) >> shift_);
  }

 private:
  using word = std::make_unsigned_t<Number>;

  /// 2^(shift + bits of Number - 1) / value, rounded up.
  static word reciprocal(Number value, int shift) {
    __extension__ using wide = unsigned __int128;
    auto scale = wide{1} << (shift + 8 * static_cast<int>(sizeof(Number)) - 1);
    return static_cast<word>((scale + static_cast<word>(value) - 1) / static_cast<word>(value));
  }

  /// The upper half of the product's bits.
  __device__ static word upper_half(word a, word b) {
    if constexpr (sizeof(word) == sizeof(std::uint32_t))
      return __umulhi(a, b);
    else
      return __umul64hi(a, b);
  }

  int shift_;
  word factor_;
};

}  // namespace troupe::cuda
