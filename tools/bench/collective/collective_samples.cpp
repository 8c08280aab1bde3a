#include "bench/collective/collective_samples.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/measure/spread.hpp"

namespace troupe::bench {

nlohmann::ordered_json summary_of(const collective_samples& samples) {
  constexpr double least_us = 1e-3;  // a ratio to less says nothing
  measurements all;
  for (const auto& sample : samples)
    for (const auto& [name, us] : sample) {
      all[name].push_back(us);
      all[name + "/memcpy"].push_back(us / std::max(sample.at("memcpy_us"), least_us));
    }
  auto over_own = [&](const char* peer) -> nlohmann::ordered_json {
    if (all[peer].empty() || all["own_us"].empty()) return nullptr;
    return median_of(all[peer]) / std::max(median_of(all["own_us"]), least_us);
  };
  return {{"own_us", spread_json(all["own_us"])},
          {"foreign_us", spread_json(all["foreign_us"])},
          {"memcpy_us", spread_json(all["memcpy_us"])},
          {"probe_us", spread_json(all["probe_us"])},
          {"own_over_memcpy", spread_json(all["own_us/memcpy"])},
          {"foreign_over_memcpy", spread_json(all["foreign_us/memcpy"])},
          {"gloo_us", spread_json(all["gloo_us"])},
          {"gloo_over_own", over_own("gloo_us")},
          {"open_mpi_us", spread_json(all["open_mpi_us"])},
          {"open_mpi_over_own", over_own("open_mpi_us")}};
}

parted_samples part_at(double probe_us, const collective_samples& samples) {
  parted_samples parted;
  for (const auto& each : samples)
    (each.at("probe_us") < probe_us ? parted.fast : parted.slow).push_back(each);
  return parted;
}

std::optional<double> speed_threshold(std::vector<double> times) {
  constexpr std::size_t fewest = 8;
  constexpr double least_ratio = 1.5;
  if (times.size() < fewest) return {};
  std::ranges::sort(times);
  auto on_a_side = std::max<std::size_t>(2, times.size() / 10);
  auto widest = on_a_side;  // the first of the slow ones
  for (auto i = on_a_side; i + on_a_side <= times.size(); ++i)
    if (times[i] * times[widest - 1] > times[widest] * times[i - 1]) widest = i;
  auto fast = times[(widest - 1) / 2], slow = times[widest + (times.size() - widest) / 2];
  if (slow < least_ratio * fast) return {};
  return std::sqrt(times[widest - 1] * times[widest]);
}

}  // namespace troupe::bench
