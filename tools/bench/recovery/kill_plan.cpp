#include "bench/recovery/kill_plan.hpp"

#include <random>

namespace troupe::bench {

std::vector<planned_kill> plan_kills(const kill_plan_options& options) {
  // Its words are the standard's; the standard's distributions are each library's own.
  std::mt19937_64 words(options.seed);
  auto choices = options.most_steps_between - options.least_steps_between + 1;
  std::vector<planned_kill> planned;
  std::uint64_t step = 0;
  for (int i = 0; i < options.num_kills; ++i) {
    step += options.least_steps_between + words() % choices;
    auto rank = options.ranks[static_cast<std::size_t>(i) % options.ranks.size()];
    planned.push_back({rank, step, static_cast<double>(words() % 1000) / 1000});
  }
  return planned;
}

}  // namespace troupe::bench
