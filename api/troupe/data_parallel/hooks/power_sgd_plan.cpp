#include "troupe/data_parallel/hooks/power_sgd_plan.hpp"

#include "troupe/data_parallel/hooks/power_sgd.hpp"
#include "troupe/gradients/low_rank_factors.hpp"

namespace troupe {
power_sgd_plan plan_power_sgd(const gradient_bucket& bucket, const power_sgd_options& options) {
  power_sgd_plan result;
  for (const auto& part : bucket.parts) {
    auto [rows, columns, rank] =
        gradients::factors_of(part.extents, options.rank, options.min_compression_rate);
    if (rank == 0) {
      result.dense.push_back({part, result.first_round_elements});
      result.first_round_elements += part.extents.num_elements();
      continue;
    }
    factored_part factors{.part = part, .rows = rows, .columns = columns, .rank = rank, .begin = {}, .q = {}};
    factors.first_p = result.first_round_elements;
    factors.first_q = result.second_round_elements;
    result.first_round_elements += factors.rows * factors.rank;
    result.second_round_elements += factors.columns * factors.rank;
    factors.begin = gradients::initial_q({rows, columns, rank}, options.seed, part.parameter);
    factors.q = factors.begin.clone();
    result.factored.push_back(std::move(factors));
  }
  return result;
}

}  // namespace troupe
