#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace troupe::bench {

/// Repeated measurements, in the order they were taken, by the name of their field in a result.
using measurements = std::map<std::string, std::vector<double>>;

/// The nearest measurement to the middle; 0 if there is none.
double median_of(std::vector<double> values);

/// {"median":..,"p25":..,"p75":..,"min":..,"max":..,"n":..}, whose quantiles lie on the nearest measurement;
/// null if nothing was measured.
nlohmann::ordered_json spread_json(std::vector<double> values);

/// [low, high]: the median of what was drawn from lies between these measurements in 95 of 100 cases,
/// whatever its distribution (ranks of the binomial distribution). Null for fewer than 6 measurements, of
/// which no interval is that sure.
nlohmann::ordered_json median_interval(std::vector<double> values);

/// Adds the spread of each to a result.
void add_spreads(const measurements& measured, nlohmann::ordered_json& result);

}  // namespace troupe::bench
