#include "troupe/gradients/communication_order.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace troupe::gradients {

std::vector<int> communication_order(std::span<const timed_chunk> chunks) {
  std::vector<int> waiting(chunks.size()), result;
  std::iota(waiting.begin(), waiting.end(), 0);
  double now = 0;
  while (!waiting.empty()) {
    auto rank = [&](int index) {
      const auto& chunk = chunks[static_cast<std::size_t>(index)];
      return std::tuple(std::max(now, chunk.ready), chunk.needed, index);
    };
    auto next = std::ranges::min_element(waiting, {}, rank);
    const auto& chunk = chunks[static_cast<std::size_t>(*next)];
    now = std::max(now, chunk.ready) + chunk.takes;
    result.push_back(*next);
    waiting.erase(next);
  }
  return result;
}

}  // namespace troupe::gradients
