#include "troupe/ops/cpu/reductions/reductions.hpp"

#include <algorithm>

#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t rows_per_block = 32;

TROUPE_CLONES void add_row(const float* row, float* sum, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) sum[i] += row[i];
}

/// Processes strips of columns, so that the sum stays in the L1 cache.
void sum_rows(const tensor& x, std::int64_t first, std::int64_t last, std::int64_t columns, float* sum) {
  alignas(64) std::array<float, block_elements> scratch;
  std::fill_n(sum, columns, 0.0F);
  for (std::int64_t column = 0; column < columns; column += block_elements) {
    auto count = std::min(block_elements, columns - column);
    for (auto row = first; row < last; ++row)
      add_row(read_block(x, row * columns + column, count, scratch), sum + column, count);
  }
}

}  // namespace

void row_sum(const tensor& x, tensor& sum, gradient_mode mode) {
  auto columns = sum.num_elements(), rows = columns == 0 ? 0 : x.num_elements() / columns;
  auto num_blocks = (rows + rows_per_block - 1) / rows_per_block;
  auto partial = tensor::empty({num_blocks, columns});
  auto* sums = partial.values<float>().data();
  parallel_for(num_blocks, x.num_elements(), [&](std::int64_t block) {
    auto first = block * rows_per_block;
    sum_rows(x, first, std::min(first + rows_per_block, rows), columns, sums + block * columns);
  });
  if (mode == gradient_mode::assign) sum.fill_zero();
  for (std::int64_t block = 0; block < num_blocks; ++block)
    add_row(sums + block * columns, sum.values<float>().data(), columns);
}

}  // namespace troupe::cpu
