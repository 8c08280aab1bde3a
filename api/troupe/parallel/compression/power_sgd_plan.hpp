#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/parallel/comm_hook.hpp"

namespace troupe {

struct power_sgd_options;

/// A parameter that PowerSGD sends as two factors, and where these lie in what is reduced.
struct factored_part {
  bucket_part part;
  std::int64_t rows = 0, columns = 0, rank = 0;
  std::int64_t first_p = 0;  ///< in the first round: [rows, rank]
  std::int64_t first_q = 0;  ///< in the second round: [columns, rank]
  tensor begin;              ///< f32 [columns, rank]: the first Q, random
  tensor q;                  ///< the Q of the last step

  /// The part's elements of a leaf as a matrix, sharing them.
  tensor matrix_of(const tensor& leaf) const {
    return leaf.rows(part.first, rows * columns).reshape({rows, columns});
  }
  tensor p_of(const tensor& first_round) const {
    return first_round.rows(first_p, rows * rank).reshape({rows, rank});
  }
  tensor q_of(const tensor& second_round) const {
    return second_round.rows(first_q, columns * rank).reshape({columns, rank});
  }
};

/// A parameter that is reduced as it is, in the first round.
struct dense_part {
  bucket_part part;
  std::int64_t first = 0;

  tensor of(const tensor& leaf) const { return leaf.rows(part.first, part.extents.num_elements()); }
  tensor sent_of(const tensor& first_round) const {
    return first_round.rows(first, part.extents.num_elements());
  }
};

/// What PowerSGD does with the parts of one bucket.
struct power_sgd_plan {
  std::vector<factored_part> factored;
  std::vector<dense_part> dense;
  std::int64_t first_round_elements = 0, second_round_elements = 0;
};

/// A part is factored if it has at least two axes and its factors are `least_saving` times smaller.
power_sgd_plan plan_power_sgd(const gradient_bucket& bucket, const power_sgd_options& options);

}  // namespace troupe
