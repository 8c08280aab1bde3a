#include "troupe/planning/detail/automatic_placement.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace troupe::detail {
namespace {

/// Each round keeps more room free on the devices that were exceeded.
constexpr int most_rounds = 16;
constexpr auto most_bytes = std::numeric_limits<std::uint64_t>::max();

std::uint64_t largest_excess(const job_prediction& job, const prediction_options& options) {
  std::uint64_t largest = 0;
  for (std::size_t device = 0; device < job.memory.size(); ++device)
    largest = std::max(largest, memory_excess(job, options, device));
  return largest;
}

struct attempt {
  std::optional<placed_job> found = {};
  std::uint64_t missing_bytes = 0;  ///< of some device, if there is none
};

attempt attempt_with(const cost_profile& profile, const prediction_options& options) {
  auto counted = balance_for(options);
  attempt made;
  for (int round = 0; round < most_rounds; ++round) {
    try {
      auto map = DeviceMap::automatic(profile, counted);
      auto job = predict_job(profile, map, options);
      made.missing_bytes = largest_excess(job, options);
      if (made.missing_bytes == 0) {
        made.found = placed_job{std::move(map), std::move(job)};
        return made;
      }
      for (std::size_t device = 0; device < job.memory.size(); ++device) {
        auto& left = counted.devices[device].memory_bytes;
        auto excess = memory_excess(job, options, device);
        if (excess > 0) left = left > excess ? left - excess : 1;  // 0 would be no limit
      }
    } catch (const memory_shortage& shortage) {
      made.missing_bytes = shortage.missing_bytes();
      return made;
    }
  }
  return made;
}

}  // namespace

placed_job automatic_placement(const cost_profile& profile, const prediction_options& options) {
  auto enlarged = options;
  std::uint64_t added = 0;
  while (true) {
    auto made = attempt_with(profile, enlarged);
    if (made.found) {
      made.found->missing_bytes = largest_excess(made.found->job, options);
      return *std::move(made.found);
    }
    added += std::max(made.missing_bytes, added / 4);
    for (std::size_t device = 0; device < options.devices.size(); ++device)
      if (auto bytes = options.devices[device].memory_bytes; bytes != 0)
        enlarged.devices[device].memory_bytes = bytes + std::min(added, most_bytes - bytes);
  }
}

}  // namespace troupe::detail
