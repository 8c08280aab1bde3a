#include "bench/collective/collective_summary.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::bench {
namespace {

using maybe = std::optional<double>;

/// The spread of what `value` finds in each sample, where it finds something.
template <class Value>
spread spread_over(const std::vector<collective_sample>& samples, Value value) {
  std::vector<double> found;
  for (const auto& each : samples)
    if (maybe one = value(each)) found.push_back(*one);
  return spread_of(std::move(found));
}

maybe ratio(maybe above, maybe below) {
  if (!above || !below) return {};
  return *above / std::max(*below, 1e-3);
}

double over(const spread& peer, const spread& own) {
  return peer.count > 0 && own.count > 0 ? peer.median / std::max(own.median, 1e-3) : 0;
}

template <class Belongs>
std::vector<collective_sample> those(const std::vector<collective_sample>& samples, Belongs belongs) {
  std::vector<collective_sample> found;
  std::ranges::copy_if(samples, std::back_inserter(found), belongs);
  return found;
}

}  // namespace

collective_summary collective_summary::of(const std::vector<collective_sample>& samples) {
  using sample = collective_sample;
  collective_summary made;
  made.probe = spread_over(samples, [](const sample& s) { return maybe(s.probe); });
  made.memcpy = spread_over(samples, [](const sample& s) { return maybe(s.memcpy); });
  made.own = spread_over(samples, [](const sample& s) { return s.own; });
  made.foreign = spread_over(samples, [](const sample& s) { return s.foreign; });
  made.gloo = spread_over(samples, [](const sample& s) { return s.gloo; });
  made.open_mpi = spread_over(samples, [](const sample& s) { return s.open_mpi; });
  made.own_over_memcpy = spread_over(samples, [](const sample& s) { return ratio(s.own, s.memcpy); });
  made.foreign_over_memcpy = spread_over(samples, [](const sample& s) { return ratio(s.foreign, s.memcpy); });
  made.gloo_over_own = over(made.gloo, made.own);
  made.open_mpi_over_own = over(made.open_mpi, made.own);
  return made;
}

nlohmann::ordered_json collective_summary::json() const {
  auto or_null = [](const spread& values) {
    return values.count == 0 ? nlohmann::ordered_json(nullptr) : to_json(values);
  };
  auto ratio_or_null = [](double value) {
    return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  };
  return {{"own_us", or_null(own)},
          {"foreign_us", or_null(foreign)},
          {"memcpy_us", or_null(memcpy)},
          {"probe_us", or_null(probe)},
          {"own_over_memcpy", or_null(own_over_memcpy)},
          {"foreign_over_memcpy", or_null(foreign_over_memcpy)},
          {"gloo_us", or_null(gloo)},
          {"gloo_over_own", ratio_or_null(gloo_over_own)},
          {"open_mpi_us", or_null(open_mpi)},
          {"open_mpi_over_own", ratio_or_null(open_mpi_over_own)}};
}

std::vector<collective_sample> faster_than(double probe_us, const std::vector<collective_sample>& samples) {
  return those(samples, [&](const collective_sample& s) { return s.probe < probe_us; });
}

std::vector<collective_sample> slower_than(double probe_us, const std::vector<collective_sample>& samples) {
  return those(samples, [&](const collective_sample& s) { return s.probe >= probe_us; });
}

}  // namespace troupe::bench
