#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace troupe::bench {

/// What repeated measurements came to, in the unit they had.
struct spread {
  std::size_t count = 0;
  double smallest = 0, lower_quartile = 0, median = 0, upper_quartile = 0, largest = 0;
};

/// Quantiles lie on the nearest measurement; all zero if there is none.
spread spread_of(std::vector<double> values);

/// {"median":..,"p25":..,"p75":..,"min":..,"max":..,"n":..}; null if nothing was measured.
nlohmann::ordered_json to_json(const spread& of);
/// The spread of `values` as JSON.
nlohmann::ordered_json spread_json(const std::vector<double>& values);

/// "median [smallest..largest]", each times `factor`, with so many digits after the point.
std::string to_text(const spread& of, double factor, int digits);

}  // namespace troupe::bench
