#pragma once
#include <cstdint>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

#include "support/processes/spawn_ranks.hpp"
#include "troupe/ops/tree_reduction.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::testing {

constexpr dtype collective_types[] = {dtype::f32, dtype::bf16, dtype::f16, dtype::i32, dtype::i64, dtype::u8};
/// Those of calls that only move elements.
constexpr dtype moved_types[] = {dtype::f32, dtype::bf16, dtype::f16,    dtype::i32,
                                 dtype::i64, dtype::u8,   dtype::boolean};
constexpr reduce_op reduce_ops[] = {reduce_op::sum, reduce_op::mean, reduce_op::max, reduce_op::min,
                                    reduce_op::product};

/// Calls `body` with an object of the type of `type`.
template <class Body>
void with_type(dtype type, Body body) {
  if (type == dtype::f32) body(float{});
  if (type == dtype::bf16) body(bfloat16{});
  if (type == dtype::f16) body(float16{});
  if (type == dtype::i32) body(std::int32_t{});
  if (type == dtype::i64) body(std::int64_t{});
  if (type == dtype::u8) body(std::uint8_t{});
  if (type == dtype::boolean) body(bool{});
}

template <class T>
T element_of(double value) {
  if constexpr (std::is_same_v<T, bool>)
    return static_cast<std::int64_t>(value) % 2 == 1;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::int64_t>(value));  // toward zero
  else
    return T(static_cast<float>(value));
}

/// Element i is value(i), which the dtype can hold.
template <class Value>
void fill(tensor& x, Value value) {
  with_type(x.dtype(), [&](auto one) {
    using T = decltype(one);
    std::int64_t i = 0;
    for (T& each : x.values<T>()) each = element_of<T>(value(i++));
  });
}

/// Where a tensor begins: at a cache line, or one element after it.
enum class placement { aligned, shifted };

inline tensor placed(std::int64_t count, dtype type, placement where = placement::aligned) {
  if (where == placement::aligned) return tensor::empty({count}, type);
  return tensor::empty({count + 1}, type).rows(1, count);
}

template <class Value>
tensor filled(std::int64_t count, dtype type, Value value, placement where = placement::aligned) {
  auto x = placed(count, type, where);
  fill(x, value);
  return x;
}

/// Element i of x is value(i), rounded to the dtype once.
template <class Value>
void expect_elements(const tensor& x, Value value,
                     std::source_location where = std::source_location::current()) {
  with_type(x.dtype(), [&](auto one) {
    using T = decltype(one);
    std::int64_t i = 0;
    for (const T& each : x.values<T>()) {
      auto wanted = element_of<T>(value(i));
      if (static_cast<double>(static_cast<float>(each)) != static_cast<double>(static_cast<float>(wanted)))
        expect(false,
               "element " + std::to_string(i) + " of " + describe(x) + " to be " +
                   std::to_string(static_cast<double>(static_cast<float>(wanted))) + ", got " +
                   std::to_string(static_cast<double>(static_cast<float>(each))),
               where);
      ++i;
    }
  });
}

/// Numbers of elements: none, few, just below and above a slot's inline limit of 4096 bytes, many; odd ones
/// too.
inline std::vector<std::int64_t> case_sizes(dtype type) {
  auto fitting = static_cast<std::int64_t>(4096 / size_bytes(type));
  return {0, 1, 7, 8, 33, fitting - 1, fitting, fitting + 1, 3 * fitting + 5};
}

}  // namespace troupe::testing
