#include <cmath>
#include <type_traits>

#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/broadcast_runs.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/loops/vector_math.hpp"

namespace troupe::cpu {
namespace {

/// Integers wrap around, computed in unsigned arithmetic.
template <class T>
using wrapping =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

struct sum_of {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<T>(wrapping<T>(a) + wrapping<T>(b));
  }
};
struct difference_of {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<T>(wrapping<T>(a) - wrapping<T>(b));
  }
};
struct product_of {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<T>(wrapping<T>(a) * wrapping<T>(b));
  }
};
struct quotient_of {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return a / b;
  }
};
struct smaller_of {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<bool>((b < a) | (b != b)) ? b : a;
  }
};
struct larger_of {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<bool>((b > a) | (b != b)) ? b : a;
  }
};
struct is_equal {
  template <class T>
  [[gnu::always_inline]] static bool apply(T a, T b) {
    return a == b;
  }
};
struct is_less {
  template <class T>
  [[gnu::always_inline]] static bool apply(T a, T b) {
    return a < b;
  }
};

template <class Op, class T, class Result>
TROUPE_CLONES void binary_loop(const T* a, const T* b, Result* c, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) c[i] = Op::apply(a[i], b[i]);
}

/// The same for a group of runs in place; an operand may be a single repeated element.
template <class Op, class T, class Result>
TROUPE_CLONES void binary_runs(const run_group& group, const T* __restrict a, const T* __restrict b,
                               Result* __restrict c) {
  for (std::int64_t run = 0; run < group.runs;
       ++run, a += group.steps[0], b += group.steps[1], c += group.count) {
    auto left = a[0], right = b[0];
    if (group.strides[0] == 0 && group.strides[1] == 0)
      std::fill_n(c, group.count, Op::apply(left, right));
    else if (group.strides[0] == 0)
      for (std::int64_t i = 0; i < group.count; ++i) c[i] = Op::apply(left, b[i]);
    else if (group.strides[1] == 0)
      for (std::int64_t i = 0; i < group.count; ++i) c[i] = Op::apply(a[i], right);
    else
      for (std::int64_t i = 0; i < group.count; ++i) c[i] = Op::apply(a[i], b[i]);
  }
}

/// T: what the operands are computed as; Result: T, or bool for comparisons.
template <class Op, class T, class Result>
void binary_of(const tensor& a, const tensor& b, tensor& c) {
  constexpr auto type = dtype_of<T>::value;
  if (a.dtype() == type && b.dtype() == type && c.dtype() == dtype_of<Result>::value)
    return for_each_run(c.shape(), {a.shape(), b.shape()}, [&](const run_group& some) {
      binary_runs<Op>(some, a.values<T>().data() + some.offsets[0], b.values<T>().data() + some.offsets[1],
                      c.values<Result>().data() + some.first);
    });
  if constexpr (std::is_same_v<T, float>)
    for_each_single_run(c.shape(), {a.shape(), b.shape()},
                        [&](std::int64_t first, std::int64_t count, const auto& from, const auto& strides) {
                          alignas(64) std::array<float, block_elements> a_block, b_block, c_block;
                          const auto* left = operand_block(a, from[0], strides[0], count, a_block);
                          const auto* right = operand_block(b, from[1], strides[1], count, b_block);
                          if constexpr (std::is_same_v<Result, float>) {
                            auto* target = block_to_write(c, first, c_block);
                            binary_loop<Op>(left, right, target, count);
                            write_block(c, first, count, target);
                          } else {
                            binary_loop<Op>(left, right, c.values<Result>().data() + first, count);
                          }
                        });
}

template <class Op>
void floating_binary(const tensor& a, const tensor& b, tensor& c) {
  binary_of<Op, float, float>(a, b, c);
}

template <class Op>
void arithmetic(const tensor& a, const tensor& b, tensor& c) {
  if (a.dtype() == dtype::i64) return binary_of<Op, std::int64_t, std::int64_t>(a, b, c);
  if (a.dtype() == dtype::i32) return binary_of<Op, std::int32_t, std::int32_t>(a, b, c);
  floating_binary<Op>(a, b, c);
}

template <class Op>
void comparison(const tensor& a, const tensor& b, tensor& c) {
  if (a.dtype() == dtype::i64) return binary_of<Op, std::int64_t, bool>(a, b, c);
  if (a.dtype() == dtype::i32) return binary_of<Op, std::int32_t, bool>(a, b, c);
  binary_of<Op, float, bool>(a, b, c);
}

TROUPE_CLONES void select(const bool* condition, const float* a, const float* b, float* c,
                          std::int64_t size) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(condition);
  for (std::int64_t i = 0; i < size; ++i) {
    auto left = std::bit_cast<std::uint32_t>(a[i]), right = std::bit_cast<std::uint32_t>(b[i]);
    auto mask = -static_cast<std::uint32_t>(bytes[i]);
    c[i] = std::bit_cast<float>((left & mask) | (right & ~mask));
  }
}

void where(const tensor& condition, const tensor& a, const tensor& b, tensor& c) {
  for_each_single_run(c.shape(), {a.shape(), b.shape(), condition.shape()},
                      [&](std::int64_t first, std::int64_t count, const auto& from, const auto& strides) {
                        alignas(64) std::array<float, block_elements> a_block, b_block, c_block;
                        alignas(64) std::array<bool, block_elements> condition_block;
                        auto* target = block_to_write(c, first, c_block);
                        select(operand_block(condition, from[2], strides[2], count, condition_block),
                               operand_block(a, from[0], strides[0], count, a_block),
                               operand_block(b, from[1], strides[1], count, b_block), target, count);
                        write_block(c, first, count, target);
                      });
}

struct exponential_of {
  [[gnu::always_inline]] static float apply(float x) { return exp_f32(x); }
};
struct logarithm_of {
  [[gnu::always_inline]] static float apply(float x) { return log_f32(x); }
};
struct root_of {
  [[gnu::always_inline]] static float apply(float x) { return std::sqrt(x); }
};
struct negative_of {
  [[gnu::always_inline]] static float apply(float x) { return -x; }
};
struct magnitude_of {
  [[gnu::always_inline]] static float apply(float x) { return vector_math::magnitude(x); }
};
struct reciprocal_of {
  [[gnu::always_inline]] static float apply(float x) { return 1 / x; }
};

template <class Op>
TROUPE_CLONES void unary_loop(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = Op::apply(x[i]);
}

template <class Op>
void unary(const tensor& x, tensor& y) {
  map_in_blocks(unary_loop<Op>, y, x);
}

TROUPE_CLONES void add_multiple(float alpha, const float* x, const float* y, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = y[i] + alpha * x[i];
}

TROUPE_CLONES void add_to_each(float number, const float* x, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = x[i] + number;
}

TROUPE_CLONES void clamp_each(float low, float high, const float* x, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto above = x[i] < low ? low : x[i];
    to[i] = above > high ? high : above;
  }
}

TROUPE_CLONES void multiply_by(float factor, const float* x, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = x[i] * factor;
}

void axpy(float alpha, const tensor& x, tensor& y) {
  map_in_blocks([&](const float* from, const float* old, float* to,
                    std::int64_t size) { add_multiple(alpha, from, old, to, size); },
                y, x, y);
}

template <void (*loop)(float number, const float* x, float* to, std::int64_t size)>
void with_number(const tensor& x, float number, tensor& y) {
  map_in_blocks([&](const float* from, float* to, std::int64_t size) { loop(number, from, to, size); }, y, x);
}

void clamp(const tensor& x, float low, float high, tensor& y) {
  map_in_blocks(
      [&](const float* from, float* to, std::int64_t size) { clamp_each(low, high, from, to, size); }, y, x);
}

}  // namespace

elementwise_kernels elementwise() {
  return {.add = arithmetic<sum_of>,
          .subtract = arithmetic<difference_of>,
          .multiply = arithmetic<product_of>,
          .divide = floating_binary<quotient_of>,
          .minimum = arithmetic<smaller_of>,
          .maximum = arithmetic<larger_of>,
          .equal = comparison<is_equal>,
          .less = comparison<is_less>,
          .where = where,
          .exp = unary<exponential_of>,
          .log = unary<logarithm_of>,
          .sqrt = unary<root_of>,
          .negate = unary<negative_of>,
          .abs = unary<magnitude_of>,
          .reciprocal = unary<reciprocal_of>,
          .axpy = axpy,
          .add_number = with_number<add_to_each>,
          .multiply_by_number = with_number<multiply_by>,
          .clamp = clamp};
}

}  // namespace troupe::cpu
