#pragma once
#include <cstdint>
#include <type_traits>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe::cpu {

/// Integer sums and products wrap around, computed in unsigned arithmetic.
template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else
    return a + b;
}
template <class T>
T wrapping_product(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}

template <class T, class Pair>
void for_each_pair(const T* a, const T* b, T* result, std::int64_t count, Pair pair) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = pair(a[i], b[i]);
}

/// result[i] = a[i] op b[i], a mean as a sum; `result` may be an input.
template <class T>
void combine(reduce_op op, const T* a, const T* b, T* result, std::int64_t count) {
  switch (op) {
    case reduce_op::sum:
    case reduce_op::mean:
      return for_each_pair(a, b, result, count, wrapping_sum<T>);
    case reduce_op::product:
      return for_each_pair(a, b, result, count, wrapping_product<T>);
    case reduce_op::max:
      return for_each_pair(a, b, result, count, [](T x, T y) { return x > y || x != x ? x : y; });
    case reduce_op::min:
      return for_each_pair(a, b, result, count, [](T x, T y) { return x < y || x != x ? x : y; });
  }
}

/// Fused sums of two or four arrays, which avoid storing intermediate sums. `result` must not be an input.
void sum_of_two(const float* a, const float* b, float* result, std::int64_t count);
void sum_of_four(const float* a, const float* b, const float* c, const float* d, float* result,
                 std::int64_t count);

}  // namespace troupe::cpu
