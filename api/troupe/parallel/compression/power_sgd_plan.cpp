#include "troupe/parallel/compression/power_sgd_plan.hpp"

#include <algorithm>

#include "troupe/parallel/compression/power_sgd.hpp"
#include "troupe/random/normal.hpp"

namespace troupe {
namespace {

/// Computes the factors' rank; 0 if compression does not pay.
factored_part factors_of(const bucket_part& part, const power_sgd_options& options) {
  factored_part result{.part = part, .begin = {}, .q = {}};
  if (part.extents.rank() < 2 || part.extents.num_elements() == 0) return result;
  result.rows = part.extents[0];
  result.columns = part.extents.num_elements() / result.rows;
  auto rank = std::min({static_cast<std::int64_t>(options.rank), result.rows, result.columns});
  auto sent = static_cast<double>((result.rows + result.columns) * rank);
  if (sent * options.min_compression_rate <= static_cast<double>(part.extents.num_elements()))
    result.rank = rank;
  return result;
}

}  // namespace

power_sgd_plan plan_power_sgd(const gradient_bucket& bucket, const power_sgd_options& options) {
  power_sgd_plan result;
  for (const auto& part : bucket.parts) {
    auto factors = factors_of(part, options);
    if (factors.rank == 0) {
      result.dense.push_back({part, result.first_round_elements});
      result.first_round_elements += part.extents.num_elements();
      continue;
    }
    factors.first_p = result.first_round_elements;
    factors.first_q = result.second_round_elements;
    result.first_round_elements += factors.rows * factors.rank;
    result.second_round_elements += factors.columns * factors.rank;
    factors.begin = tensor::empty({factors.columns, factors.rank});
    fill_normal(factors.begin, 0, 1, options.seed, "power_sgd.q/" + part.parameter);
    factors.q = factors.begin.clone();
    result.factored.push_back(std::move(factors));
  }
  return result;
}

}  // namespace troupe
