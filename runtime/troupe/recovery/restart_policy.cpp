#include "troupe/recovery/restart_policy.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe::recovery {
namespace {

using clock = std::chrono::steady_clock;

std::vector<int> children_between(int first, int end) {
  std::vector<int> children(static_cast<std::size_t>(end - first));
  std::iota(children.begin(), children.end(), first);
  return children;
}

clock::duration delay_after(const restart_options& options, std::ptrdiff_t recent_restarts) {
  if (recent_restarts == 0) return clock::duration::zero();
  auto delay = std::min(options.backoff, options.backoff_limit);
  // Halving the limit instead of doubling the delay beyond it cannot overflow.
  for (; recent_restarts > 1; --recent_restarts)
    delay = delay > options.backoff_limit / 2 ? options.backoff_limit : delay * 2;
  return delay;
}

}  // namespace

std::vector<int> children_to_restart(restart_policy policy, int child, int num_children) {
  if (child < 0 || child >= num_children)
    throw_invalid("children_to_restart", "a child in [0, " + std::to_string(num_children) + ")",
                  std::to_string(child));
  switch (policy) {
    case restart_policy::one_for_one:
      return {child};
    case restart_policy::one_for_all:
      return children_between(0, num_children);
    case restart_policy::rest_for_one:
      return children_between(child, num_children);
  }
  throw_invalid("children_to_restart", "a restart policy", std::to_string(static_cast<int>(policy)));
}

std::optional<clock::duration> restart_intensity::restart(clock::time_point now) {
  std::erase_if(times_, [&](clock::time_point time) { return now - time >= options_.period; });
  auto recent = std::ssize(times_);
  if (recent >= options_.intensity) return {};
  times_.push_back(now);
  return delay_after(options_, recent);
}

int restart_intensity::num_recent(clock::time_point now) const {
  return static_cast<int>(
      std::ranges::count_if(times_, [&](clock::time_point time) { return now - time < options_.period; }));
}

}  // namespace troupe::recovery
