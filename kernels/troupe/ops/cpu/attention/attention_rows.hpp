#pragma once
#include <algorithm>
#include <cstdint>

namespace troupe::cpu {

/// Rows of scores, one per query, and the number of visible scores in each; the others are masked. Rows are
/// padded to whole vectors, which may be read and written.
struct score_rows {
  std::int64_t count, stride;
  std::int64_t max_seen;       ///< the most that any row sees
  std::int64_t seen_by_first;  ///< grows by one per row, up to max_seen
  std::int64_t num_seen(std::int64_t row) const { return std::min(max_seen, seen_by_first + row); }
};

/// The state of the online softmax of each row.
struct running_softmax {
  float* largest;  ///< [rows] the largest score so far; -infinity at first
  float* sum;      ///< [rows] the sum of e^(score - largest) so far
};

/// Continues the online softmax with a block: replaces each visible product q . k by e^(scale * product -
/// largest so far) and each masked one by 0. `factors` receives the factor that rescales sums of earlier
/// blocks. scale > 0.
void continue_softmax(const score_rows& rows, float* products, float scale, const running_softmax& softmax,
                      float* factors);

/// result[row] = largest + log(sum), for `count` rows
void log_sum_exp_of(const running_softmax& softmax, std::int64_t count, float* result);

/// to = factor * from
void scale_row(const float* from, float factor, float* to, std::int64_t size);

/// result[row] = a . b, in 16 sums that a fixed tree combines, for `count` rows of `size`
void dot_rows(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride,
              std::int64_t count, std::int64_t size, float* result);

/// Replaces products q . k by probabilities, and gradients dout . v by the gradients of the products; 0 where
/// masked. `delta` is dout . out of each row.
void softmax_gradient(const score_rows& rows, float* products, float* gradients, float scale,
                      const float* log_sum_exp, const float* delta);

}  // namespace troupe::cpu
