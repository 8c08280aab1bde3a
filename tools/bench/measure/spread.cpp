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

void add_spreads(const measurements& measured, nlohmann::ordered_json& result) {
  for (const auto& [name, values] : measured) result[name] = spread_json(values);
}

}  // namespace troupe::bench
