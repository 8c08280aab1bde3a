#include "troupe/scheduler/state/copy_interval.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors::scheduler {
namespace {

constexpr double allowed_share = 0.02;
constexpr double weight_of_newest = 0.2;
constexpr std::uint64_t most_steps = 64;

void blend(double& mean, double newest) {
  mean = mean == 0 ? newest : mean + weight_of_newest * (newest - mean);
}

}  // namespace

void copy_interval::observe(double step_s, double copy_s) {
  if (copy_s > 0) blend(copy_s_, copy_s);
  if (step_s > copy_s) blend(step_s_, step_s - copy_s);
}

std::uint64_t copy_interval::steps() const {
  if (step_s_ == 0 || copy_s_ == 0) return 1;
  auto wanted = std::ceil(copy_s_ / (allowed_share * step_s_));
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, most_steps);
}

}  // namespace troupe::actors::scheduler
