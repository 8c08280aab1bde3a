#include "troupe/ops/cpu/argmax.hpp"
#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/in_blocks.hpp"
#include "troupe/ops/cpu/total_reduction.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe::cpu {
namespace {

using block_floats = std::array<float, block_elements>;

// The tree: what is reduced is cut into parts of a fixed number of elements, each part becomes one element,
// and so on, until one is left.
constexpr std::int64_t row_part = block_elements;  // along the innermost axis
constexpr std::int64_t column_part = 64;           // along others, where whole rows are combined

constexpr auto plus = [](float a, float b) { return a + b; };
// NaN stays: the first choice keeps it in a, the second takes it from b.
constexpr auto larger = [](float a, float b) {
  auto result = b > a ? b : a;
  return b == b ? result : b;
};
constexpr auto smaller = [](float a, float b) {
  auto result = b < a ? b : a;
  return b == b ? result : b;
};

/// Element i goes to lane i % 32, and the lanes are combined in a tree; short rows have no use for lanes. To
/// combine with `first` changes nothing. (Of 16 lanes the compiler does not make vectors.)
template <class Op>
[[gnu::always_inline]] inline float reduce_row(const float* x, std::int64_t size, float first, const Op& op) {
  constexpr std::int64_t num_lanes = 32;
  float lane[num_lanes];
  if (size < num_lanes) {
    auto result = x[0];
    for (std::int64_t i = 1; i < size; ++i) result = op(result, x[i]);
    return result;
  }
  for (auto& each : lane) each = first;
  std::int64_t i = 0;
  for (; i + num_lanes <= size; i += num_lanes)
    for (std::int64_t l = 0; l < num_lanes; ++l) lane[l] = op(lane[l], x[i + l]);
  for (std::int64_t l = 0; i + l < size; ++l) lane[l] = op(lane[l], x[i + l]);
  for (auto width = num_lanes / 2; width > 0; width /= 2)
    for (std::int64_t l = 0; l < width; ++l) lane[l] = op(lane[l], lane[l + width]);
  return lane[0];
}

TROUPE_CLONES float row_sum(const float* x, std::int64_t size) { return reduce_row(x, size, 0, plus); }
TROUPE_CLONES float row_max(const float* x, std::int64_t size) { return reduce_row(x, size, x[0], larger); }
TROUPE_CLONES float row_min(const float* x, std::int64_t size) { return reduce_row(x, size, x[0], smaller); }

TROUPE_CLONES void add_to(float* __restrict y, const float* __restrict x, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] += x[i];
}
TROUPE_CLONES void max_to(float* __restrict y, const float* __restrict x, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = larger(y[i], x[i]);
}
TROUPE_CLONES void min_to(float* __restrict y, const float* __restrict x, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = smaller(y[i], x[i]);
}

/// One kind of reduction: of the elements of a row, and of a row into another.
struct reducer {
  float (*row)(const float* x, std::int64_t size);
  void (*combine)(float* y, const float* x, std::int64_t size);
};

/// Rows of x: [outer, count] become `parts` elements each; many short rows are read together.
void reduce_rows(const reducer& by, const tensor& x, const reduced_axis& along, std::int64_t parts,
                 float* y) {
  auto together = std::max<std::int64_t>(1, block_elements / along.count);
  auto num_groups = quotient_up(along.outer, together);
  parallel_for(num_groups * parts, grain_of(std::min(block_elements, along.count * together)),
               [&](std::int64_t index) {
                 alignas(64) block_floats scratch;
                 auto row = index / parts * together, part = index % parts;
                 auto rows = std::min(together, along.outer - row);
                 auto size = std::min(row_part, along.count - part * row_part);
                 auto first = row * along.count + part * row_part;
                 const auto* values = read_block(x, first, rows * size, scratch);
                 for (std::int64_t i = 0; i < rows; ++i)
                   y[(row + i) * parts + part] = by.row(values + i * size, size);
               });
}

/// Rows of x: [outer, count, inner] are combined to `parts` rows for each of `outer`, a strip of columns at a
/// time.
void reduce_columns(const reducer& by, const tensor& x, const reduced_axis& along, std::int64_t parts,
                    float* y) {
  auto strips = quotient_up(along.inner, block_elements);
  auto part_elements = std::min(column_part, along.count) * std::min(block_elements, along.inner);
  parallel_for(along.outer * parts * strips, grain_of(part_elements), [&](std::int64_t index) {
    alignas(64) block_floats scratch;
    auto strip = index % strips, part = index / strips % parts, outer = index / strips / parts;
    auto column = strip * block_elements, width = std::min(block_elements, along.inner - column);
    auto row = part * column_part, last = std::min(row + column_part, along.count);
    auto at = [&](std::int64_t of) { return (outer * along.count + of) * along.inner + column; };
    auto* result = y + (outer * parts + part) * along.inner + column;
    std::copy_n(read_block(x, at(row), width, scratch), width, result);
    while (++row < last) by.combine(result, read_block(x, at(row), width, scratch), width);
  });
}

/// [outer, inner] in f32.
tensor reduced(const reducer& by, tensor x, reduced_axis along) {
  do {
    auto parts = quotient_up(along.count, along.inner == 1 ? row_part : column_part);
    auto y = tensor::empty({along.outer, parts, along.inner});
    auto* values = y.values<float>().data();
    along.inner == 1 ? reduce_rows(by, x, along, parts, values) : reduce_columns(by, x, along, parts, values);
    x = y;
    along.count = parts;
  } while (along.count > 1);
  return x;
}

void sum(const tensor& x, const reduced_axis& along, float factor, tensor& y) {
  auto result = reduced({row_sum, add_to}, x, along);
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
  write_rounded(reduced({row_max, max_to}, x, along), y);
}

void min(const tensor& x, const reduced_axis& along, tensor& y) {
  write_rounded(reduced({row_min, min_to}, x, along), y);
}

}  // namespace

reduction_kernels reduction() {
  return {.sum = sum,
          .max = max,
          .min = min,
          .argmax = argmax,
          .total_sum = total_sum,
          .sum_of_squares = sum_of_squares,
          .all_finite = all_finite,
          .scale_all = scale_all};
}

}  // namespace troupe::cpu
