#include "bench/collective/collective_samples.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bench/measure/spread.hpp"

namespace troupe::bench {
namespace {

using samples_list = std::vector<collective_sample>;

/// Of so little that a ratio to it says nothing.
constexpr double least_us = 1e-3;

spread spread_over(const samples_list& samples, const std::string& name) {
  std::vector<double> values;
  for (const auto& each : samples)
    if (each.contains(name)) values.push_back(each.at(name));
  return spread_of(std::move(values));
}

spread ratios_to_memcpy(const samples_list& samples, const std::string& name) {
  std::vector<double> ratios;
  for (const auto& each : samples)
    if (each.contains(name)) ratios.push_back(each.at(name) / std::max(each.at("memcpy_us"), least_us));
  return spread_of(std::move(ratios));
}

nlohmann::ordered_json ratio_of_medians(const spread& peer, const spread& own) {
  if (peer.count == 0 || own.count == 0) return nullptr;
  return peer.median / std::max(own.median, least_us);
}

template <class Belongs>
samples_list those(const samples_list& samples, Belongs belongs) {
  samples_list found;
  std::ranges::copy_if(samples, std::back_inserter(found), belongs);
  return found;
}

}  // namespace

nlohmann::ordered_json summary_of(const samples_list& samples) {
  auto own = spread_over(samples, "own_us"), gloo = spread_over(samples, "gloo_us"),
       open_mpi = spread_over(samples, "open_mpi_us");
  return {{"own_us", to_json(own)},
          {"foreign_us", to_json(spread_over(samples, "foreign_us"))},
          {"memcpy_us", to_json(spread_over(samples, "memcpy_us"))},
          {"probe_us", to_json(spread_over(samples, "probe_us"))},
          {"own_over_memcpy", to_json(ratios_to_memcpy(samples, "own_us"))},
          {"foreign_over_memcpy", to_json(ratios_to_memcpy(samples, "foreign_us"))},
          {"gloo_us", to_json(gloo)},
          {"gloo_over_own", ratio_of_medians(gloo, own)},
          {"open_mpi_us", to_json(open_mpi)},
          {"open_mpi_over_own", ratio_of_medians(open_mpi, own)}};
}

samples_list faster_than(double probe_us, const samples_list& samples) {
  return those(samples, [&](const auto& each) { return each.at("probe_us") < probe_us; });
}

samples_list slower_than(double probe_us, const samples_list& samples) {
  return those(samples, [&](const auto& each) { return each.at("probe_us") >= probe_us; });
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
