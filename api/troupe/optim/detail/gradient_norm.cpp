#include "troupe/optim/detail/gradient_norm.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "troupe/ops/reduction.hpp"

namespace troupe::optim::detail {

namespace {

/// Blocks of one parameter, one after the other.
struct run_of_blocks {
  std::int64_t parameter = 0, first = 0;
  std::span<const std::int64_t> sums;  ///< the bits of their f64
};

constexpr std::size_t head_numbers = 3;  // of a parameter: its index, the first block, the number of blocks

[[noreturn]] void refuse(const tensor& squares) {
  throw std::runtime_error("expected the squares of a stage's gradients, i64 [n], got " + describe(squares));
}

void append_runs(std::vector<run_of_blocks>& to, const tensor& squares) {
  if (squares.dtype() != dtype::i64 || squares.shape().rank() != 1) refuse(squares);
  for (auto left = squares.values<std::int64_t>(); !left.empty();) {
    if (left.size() < head_numbers || left[2] < 0 || std::cmp_greater(left[2], left.size() - head_numbers))
      refuse(squares);
    to.push_back({left[0], left[1], left.subspan(head_numbers, static_cast<std::size_t>(left[2]))});
    left = left.subspan(head_numbers + to.back().sums.size());
  }
}

}  // namespace

tensor gradient_squares(std::span<const indexed_parameter> parameters) {
  std::vector<indexed_parameter> counted;
  std::vector<std::int64_t> numbers;
  std::vector<tensor> gradients;
  for (const auto& each : parameters) {
    each.target->wait_ready();
    if (!each.target->needs_step()) continue;
    counted.push_back(each);
    gradients.push_back(each.target->gradient());
  }
  auto sums = block_squares(gradients);
  auto next = sums.begin();
  for (std::size_t i = 0; i < counted.size(); ++i) {
    auto num_blocks = num_squares_blocks(gradients[i]);
    numbers.insert(numbers.end(), {counted[i].index, counted[i].first / squares_block_elements, num_blocks});
    for (auto end = next + num_blocks; next != end; ++next)
      numbers.push_back(std::bit_cast<std::int64_t>(*next));
  }
  if (numbers.empty()) numbers.assign(head_numbers, 0);  // tensors that travel have elements
  auto count = static_cast<std::int64_t>(numbers.size());
  return tensor::from(numbers, {count});
}

/// A parameter's norm is squared again: on the CPU all bits are those of the norms of whole parameters.
double combined_norm(const std::vector<tensor>& squares) {
  std::vector<run_of_blocks> runs;
  for (const auto& each : squares) append_runs(runs, each);
  std::ranges::stable_sort(runs, {},
                           [](const run_of_blocks& one) { return std::pair(one.parameter, one.first); });
  double total = 0;
  for (auto one = runs.begin(); one != runs.end();) {
    double sum = 0;
    for (auto parameter = one->parameter; one != runs.end() && one->parameter == parameter; ++one)
      for (auto bits : one->sums) sum += std::bit_cast<double>(bits);
    auto norm = std::sqrt(sum);
    total += norm * norm;
  }
  return std::sqrt(total);
}

}  // namespace troupe::optim::detail
