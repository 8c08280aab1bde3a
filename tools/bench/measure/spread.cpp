#include "bench/measure/spread.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace troupe::bench {
namespace {

double quantile(const std::vector<double>& sorted, double fraction) {
  return sorted[static_cast<std::size_t>(std::lround(fraction * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : quantile(values, 0.5);
}

nlohmann::ordered_json spread_json(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::ranges::sort(values);
  return {{"median", quantile(values, 0.5)}, {"p25", quantile(values, 0.25)}, {"p75", quantile(values, 0.75)},
          {"min", values.front()},           {"max", values.back()},          {"n", values.size()}};
}

nlohmann::ordered_json median_interval(std::vector<double> values) {
  std::ranges::sort(values);
  auto n = values.size();
  // The largest k for which at most 2.5 % of draws have fewer than k values below the median.
  double term = std::pow(0.5, static_cast<double>(n)), below = 0;
  std::size_t k = 0;
  for (; k < n && below + term <= 0.025; ++k) {
    below += term;
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  if (k == 0) return nullptr;
  return {values[k - 1], values[n - k]};
}

void add_spreads(const measurements& measured, nlohmann::ordered_json& result) {
  for (const auto& [name, values] : measured) result[name] = spread_json(values);
}

}  // namespace troupe::bench
