#include <vector>

#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/in_blocks.hpp"
#include "troupe/ops/cpu/lanes.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe::cpu {
namespace {

constexpr float infinity = __builtin_inff();

struct sum_of {
  static constexpr float neutral = 0;
  [[gnu::always_inline]] static float combine(float a, float b) { return a + b; }
};
struct max_of {
  static constexpr float neutral = -infinity;
  [[gnu::always_inline]] static float combine(float a, float b) {
    return static_cast<bool>((b > a) | (b != b)) ? b : a;
  }
};
struct min_of {
  static constexpr float neutral = infinity;
  [[gnu::always_inline]] static float combine(float a, float b) {
    return static_cast<bool>((b < a) | (b != b)) ? b : a;
  }
};

template <class Op>
TROUPE_CLONES float reduce_run(const float* x, std::int64_t size) {
  return reduce_lanes(size, Op::neutral, Op::combine, [&](std::int64_t i) { return x[i]; });
}

template <class Op>
TROUPE_CLONES void combine_rows(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = Op::combine(y[i], x[i]);
}

/// Elements of the reduced axis that become one before the next level of the tree.
constexpr std::int64_t run_elements = block_elements, rows_in_block = 32;

std::int64_t blocks_of(std::int64_t size, std::int64_t block) {
  return std::max<std::int64_t>(1, (size + block - 1) / block);
}

/// x [outer, size] to y [outer, ceil(size / run_elements)].
template <class Op>
void reduce_runs(const tensor& x, std::int64_t outer, std::int64_t size, float* y) {
  auto num_blocks = blocks_of(size, run_elements);
  auto work = std::max<std::int64_t>(1, std::min(size, run_elements));
  parallel_for(outer * num_blocks, std::max<std::int64_t>(1, 32768 / work), [&](std::int64_t at) {
    alignas(64) std::array<float, block_elements> scratch;
    auto first = at % num_blocks * run_elements, count = std::min(run_elements, size - first);
    y[at] = reduce_run<Op>(read_block(x, at / num_blocks * size + first, count, scratch), count);
  });
}

/// x [outer, size, inner] to y [outer, ceil(size / rows_in_block), inner].
template <class Op>
void reduce_columns(const tensor& x, std::int64_t outer, std::int64_t size, std::int64_t inner, float* y) {
  auto row_blocks = blocks_of(size, rows_in_block), strips = blocks_of(inner, block_elements);
  auto work = std::max<std::int64_t>(1, std::min(inner, block_elements) * std::min(size, rows_in_block));
  parallel_for(outer * row_blocks * strips, std::max<std::int64_t>(1, 32768 / work), [&](std::int64_t at) {
    alignas(64) std::array<float, block_elements> scratch;
    auto column = at % strips * block_elements, count = std::min(block_elements, inner - column);
    auto block = at / strips % row_blocks, batch = at / strips / row_blocks;
    auto* target = y + (batch * row_blocks + block) * inner + column;
    std::fill_n(target, count, Op::neutral);
    for (auto row = block * rows_in_block; row < std::min(size, (block + 1) * rows_in_block); ++row)
      combine_rows<Op>(read_block(x, (batch * size + row) * inner + column, count, scratch), target, count);
  });
}

/// One level of the tree after the other, until the middle axis has one element.
template <class Op>
void reduce(const tensor& x, tensor& y) {
  auto level = x;
  auto outer = x.extents()[0], inner = x.extents()[2];
  if (outer * inner == 0) return;
  while (true) {
    auto size = level.extents()[1], left = blocks_of(size, inner == 1 ? run_elements : rows_in_block);
    auto next = left == 1 ? y : tensor::empty({outer, left, inner});
    auto* target = next.values<float>().data();
    inner == 1 ? reduce_runs<Op>(level, outer, size, target)
               : reduce_columns<Op>(level, outer, size, inner, target);
    if (left == 1) break;
    level = next;
  }
}

TROUPE_CLONES double sum_run(const float* x, std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return x[i]; });
}

TROUPE_CLONES double sum_squares_of_run(const float* x, std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return x[i] * x[i]; });
}

TROUPE_CLONES double non_finite_in_run(const float* x, std::int64_t size) {
  return sum_in_lanes(size, [&](std::int64_t i) { return __builtin_fabsf(x[i]) < infinity ? 0.0F : 1.0F; });
}

/// Adds what `of_run` gives for blocks, in order.
template <double (*of_run)(const float*, std::int64_t)>
double add_up(const tensor& x) {
  auto size = x.num_elements(), num_blocks = (size + block_elements - 1) / block_elements;
  thread_local std::vector<double> memory;
  auto& sums = memory;  // this thread's, from whichever thread computes
  sums.assign(static_cast<std::size_t>(num_blocks), 0);
  parallel_for(num_blocks, 16, [&](std::int64_t block) {
    alignas(64) std::array<float, block_elements> scratch;
    auto first = block * block_elements, count = std::min(block_elements, size - first);
    sums[static_cast<std::size_t>(block)] = of_run(read_block(x, first, count, scratch), count);
  });
  double sum = 0;
  for (auto each : sums) sum += each;
  return sum;
}

/// Of `size` elements that follow each other.
std::int64_t first_largest_of_row(const tensor& x, std::int64_t first, std::int64_t size) {
  alignas(64) std::array<float, block_elements> scratch;
  std::int64_t best = 0;
  float largest = -infinity;
  for (std::int64_t begin = 0; begin < size && largest == largest; begin += block_elements) {
    auto count = std::min(block_elements, size - begin);
    const auto* values = read_block(x, first + begin, count, scratch);
    auto here = reduce_run<max_of>(values, count);
    if (here <= largest) continue;
    auto is_it = [&](float value) { return value == here || value != value; };
    best = begin + (std::find_if(values, values + count, is_it) - values);
    largest = here;
  }
  return best;
}

/// Of `size` elements that lie `step` apart.
std::int64_t first_largest(const tensor& x, std::int64_t first, std::int64_t size, std::int64_t step) {
  if (step == 1) return first_largest_of_row(x, first, size);
  std::array<float, 1> scratch;
  std::int64_t best = 0;
  float largest = *read_block(x, first, 1, scratch);
  for (std::int64_t i = 1; i < size && largest == largest; ++i) {
    auto value = *read_block(x, first + i * step, 1, scratch);
    if (value <= largest) continue;
    best = i;
    largest = value;
  }
  return best;
}

void argmax(const tensor& x, tensor& y) {
  auto size = x.extents()[1], inner = x.extents()[2];
  auto* target = y.values<std::int64_t>().data();
  parallel_for(y.num_elements(), std::max<std::int64_t>(1, 8192 / size), [&](std::int64_t at) {
    target[at] = first_largest(x, at / inner * size * inner + at % inner, size, inner);
  });
}

}  // namespace

reduction_kernels reduction() {
  return {.sum = reduce<sum_of>,
          .max = reduce<max_of>,
          .min = reduce<min_of>,
          .argmax = argmax,
          .total_sum = add_up<sum_run>,
          .sum_of_squares = add_up<sum_squares_of_run>,
          .num_non_finite = add_up<non_finite_in_run>};
}

}  // namespace troupe::cpu
