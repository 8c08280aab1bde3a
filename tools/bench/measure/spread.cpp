#include "bench/measure/spread.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace troupe::bench {

spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  auto at = [&](double fraction) {
    return values[static_cast<std::size_t>(std::lround(fraction * static_cast<double>(values.size() - 1)))];
  };
  return {values.size(), values.front(), at(0.25), at(0.5), at(0.75), values.back()};
}

nlohmann::ordered_json to_json(const spread& of) {
  if (of.count == 0) return nullptr;
  return {{"median", of.median}, {"p25", of.lower_quartile}, {"p75", of.upper_quartile},
          {"min", of.smallest},  {"max", of.largest},        {"n", of.count}};
}

nlohmann::ordered_json spread_json(const std::vector<double>& values) { return to_json(spread_of(values)); }

std::string to_text(const spread& of, double factor, int digits) {
  char text[128];
  std::snprintf(text, sizeof text, "%.*f [%.*f..%.*f]", digits, factor * of.median, digits,
                factor * of.smallest, digits, factor * of.largest);
  return text;
}

}  // namespace troupe::bench
