#include "troupe/autograd/gradient_rows.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::int64_t max_elements_of_a_block = std::int64_t{1} << 19;
constexpr std::int64_t block_granularity = 16;  // rows: products like whole vectors

}  // namespace

/// The smallest number of equal blocks that do not exceed this size.
std::int64_t gradient_rows_at_a_time(const shape& weight) {
  auto num_blocks = (weight.num_elements() + max_elements_of_a_block - 1) / max_elements_of_a_block;
  auto rows = (weight[0] + num_blocks - 1) / std::max(num_blocks, std::int64_t{1});
  return (rows + block_granularity - 1) / block_granularity * block_granularity;
}

}  // namespace troupe
