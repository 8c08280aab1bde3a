#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/data_parallel/comm_hook.hpp"

namespace troupe {

struct power_sgd_options;

/// A parameter that is sent as two factors, and the offsets of its factors in the tensors of the two rounds.
struct factored_part {
  bucket_part part;
  std::int64_t rows = 0, columns = 0, rank = 0;
  std::int64_t first_p = 0;  ///< offset of P [rows, rank] in the first round's tensor
  std::int64_t first_q = 0;  ///< offset of Q [columns, rank] in the second round's tensor
  tensor begin;              ///< f32 [columns, rank]: the random initial Q
  tensor q;                  ///< the Q of the last step (warm start)

  /// A view of the part's elements in `leaf` as a matrix [rows, columns].
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

/// A parameter that is all-reduced uncompressed in the first round.
struct dense_part {
  bucket_part part;
  std::int64_t first = 0;

  tensor of(const tensor& leaf) const { return leaf.rows(part.first, part.extents.num_elements()); }
  tensor sent_of(const tensor& first_round) const {
    return first_round.rows(first, part.extents.num_elements());
  }
};

/// The compressed and uncompressed parts of one bucket.
struct power_sgd_plan {
  std::vector<factored_part> factored;
  std::vector<dense_part> dense;
  std::int64_t first_round_elements = 0, second_round_elements = 0;
};

/// Compresses a part if it has at least two axes and its factors are at least `min_compression_rate` times
/// smaller.
power_sgd_plan plan_power_sgd(const gradient_bucket& bucket, const power_sgd_options& options);

}  // namespace troupe
