#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/lanes.hpp"
#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/reductions/reductions.hpp"

namespace troupe::cpu {
namespace {

using block_floats = std::array<float, block_elements>;

// The reduction tree: the elements are split into parts of a fixed size, each part is reduced to one element,
// and so on, until one is left.
constexpr std::int64_t row_part = block_elements;  // along the innermost axis
constexpr std::int64_t column_part = 64;           // along others, where whole rows are combined

// Propagates NaN: the first condition keeps a NaN in a, the second takes it from b.
constexpr auto larger = [](auto a, auto b) {
  auto result = b > a ? b : a;
  return b == b ? result : b;
};
constexpr auto smaller = [](auto a, auto b) {
  auto result = b < a ? b : a;
  return b == b ? result : b;
};

/// Reduces each row of x: [rows, size] to one element; results are `step` apart.
template <class Op>
[[gnu::always_inline]] inline void reduce_each(const float* x, std::int64_t rows, std::int64_t size,
                                               float first, float* y, std::int64_t step, const Op& op) {
  for (std::int64_t row = 0; row < rows; ++row, x += size)
    y[row * step] = reduce_lanes(size, first, op, [&](std::int64_t i) { return x[i]; });
}

TROUPE_CLONES void sum_rows(const float* x, std::int64_t rows, std::int64_t size, float* y,
                            std::int64_t step) {
  reduce_each(x, rows, size, 0, y, step, plus);
}
TROUPE_CLONES void max_rows(const float* x, std::int64_t rows, std::int64_t size, float* y,
                            std::int64_t step) {
  reduce_each(x, rows, size, -__builtin_inff(), y, step, larger);
}
TROUPE_CLONES void min_rows(const float* x, std::int64_t rows, std::int64_t size, float* y,
                            std::int64_t step) {
  reduce_each(x, rows, size, __builtin_inff(), y, step, smaller);
}

/// y = op(...op(op(y, row 0), row 1)...) for rows that are `step` apart: four at a time, so that y is read
/// and written less often.
template <class Op>
[[gnu::always_inline]] inline void combine_rows(float* __restrict y, const float* __restrict x,
                                                std::int64_t step, std::int64_t rows, std::int64_t size,
                                                const Op& op) {
  for (; rows >= 4; rows -= 4, x += 4 * step)
    for (std::int64_t i = 0; i < size; ++i)
      y[i] = op(op(op(op(y[i], x[i]), x[step + i]), x[2 * step + i]), x[3 * step + i]);
  for (; rows > 0; --rows, x += step)
    for (std::int64_t i = 0; i < size; ++i) y[i] = op(y[i], x[i]);
}

TROUPE_CLONES void add_to(float* y, const float* x, std::int64_t step, std::int64_t rows, std::int64_t size) {
  combine_rows(y, x, step, rows, size, plus);
}
TROUPE_CLONES void max_to(float* y, const float* x, std::int64_t step, std::int64_t rows, std::int64_t size) {
  combine_rows(y, x, step, rows, size, larger);
}
TROUPE_CLONES void min_to(float* y, const float* x, std::int64_t step, std::int64_t rows, std::int64_t size) {
  combine_rows(y, x, step, rows, size, smaller);
}

/// A reduction operator: reduces the elements of a row, or combines rows.
struct reducer {
  void (*rows)(const float* x, std::int64_t rows, std::int64_t size, float* y, std::int64_t step);
  void (*combine)(float* y, const float* x, std::int64_t step, std::int64_t rows, std::int64_t size);
};

/// Rows of x: [outer, count] become `parts` elements each; short rows are processed in groups.
void reduce_rows(const reducer& operation, const tensor& x, const reduced_axis& along, std::int64_t parts,
                 float* y) {
  auto together = std::max<std::int64_t>(1, block_elements / along.count);
  auto num_groups = quotient_up(along.outer, together);
  parallel_for(num_groups * parts, x.num_elements(), [&](std::int64_t index) {
    alignas(64) block_floats scratch;
    auto row = index / parts * together, part = index % parts;
    auto rows = std::min(together, along.outer - row);
    auto size = std::min(row_part, along.count - part * row_part);
    auto first = row * along.count + part * row_part;
    const auto* values = read_block(x, first, rows * size, scratch);
    operation.rows(values, rows, size, y + row * parts + part, parts);
  });
}

/// Rows of x: [outer, count, inner] are combined to `parts` rows for each of `outer`, a strip of columns at a
/// time.
void reduce_columns(const reducer& operation, const tensor& x, const reduced_axis& along, std::int64_t parts,
                    float* y) {
  auto strips = quotient_up(along.inner, block_elements);
  parallel_for(along.outer * parts * strips, x.num_elements(), [&](std::int64_t index) {
    alignas(64) block_floats scratch;
    auto strip = index % strips, part = index / strips % parts, outer = index / strips / parts;
    auto column = strip * block_elements, width = std::min(block_elements, along.inner - column);
    auto row = part * column_part, last = std::min(row + column_part, along.count);
    auto at = [&](std::int64_t i) { return (outer * along.count + i) * along.inner + column; };
    auto* result = y + (outer * parts + part) * along.inner + column;
    std::copy_n(read_block(x, at(row), width, scratch), width, result);
    ++row;
    if (x.dtype() == dtype::f32)
      operation.combine(result, x.values<float>().data() + at(row), along.inner, last - row, width);
    else
      for (; row < last; ++row)
        operation.combine(result, read_block(x, at(row), width, scratch), 0, 1, width);
  });
}

/// [outer, inner] in f32.
tensor reduced(const reducer& operation, tensor x, reduced_axis along) {
  do {
    auto parts = quotient_up(along.count, along.inner == 1 ? row_part : column_part);
    auto y = tensor::empty({along.outer, parts, along.inner});
    auto* values = y.values<float>().data();
    along.inner == 1 ? reduce_rows(operation, x, along, parts, values)
                     : reduce_columns(operation, x, along, parts, values);
    x = y;
    along.count = parts;
  } while (along.count > 1);
  return x;
}

void sum(const tensor& x, const reduced_axis& along, float factor, tensor& y) {
  auto result = reduced({sum_rows, add_to}, x, along);
  auto multiply = [factor](const float* from, float* to, std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i) to[i] = from[i] * factor;
  };
  map_in_blocks(multiply, y, result);
}

void write_rounded(const tensor& result, tensor& y) {
  map_in_blocks([](const float* from, float* to, std::int64_t size) { std::copy_n(from, size, to); }, y,
                result);
}

void max(const tensor& x, const reduced_axis& along, tensor& y) {
  write_rounded(reduced({max_rows, max_to}, x, along), y);
}

void min(const tensor& x, const reduced_axis& along, tensor& y) {
  write_rounded(reduced({min_rows, min_to}, x, along), y);
}

void first_of_largest(const tensor& x, const reduced_axis& along, tensor& index) {
  argmax(x, along, reduced({max_rows, max_to}, x, along), index);
}

}  // namespace

reduction_kernels reduction() {
  return {.sum = sum,
          .max = max,
          .min = min,
          .argmax = first_of_largest,
          .total_sum = total_sum,
          .sum_of_squares = sum_of_squares,
          .block_squares = block_squares,
          .all_finite = all_finite,
          .scale_all = scale_all};
}

}  // namespace troupe::cpu
