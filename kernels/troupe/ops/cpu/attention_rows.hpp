#pragma once
#include <algorithm>
#include <cstdint>

namespace troupe::cpu {

/// Some rows of scores, one for each query, and how many of its scores each sees: the others count as if
/// there were none. Whole vectors of a row, the last of which sees a score or not, may be read and written.
struct score_rows {
  std::int64_t count, stride;
  std::int64_t most_seen;      ///< by any
  std::int64_t seen_by_first;  ///< and one more by each after it, up to most_seen
  std::int64_t num_seen(std::int64_t row) const { return std::min(most_seen, seen_by_first + row); }
};

/// What the softmax of each row has seen so far.
struct running_softmax {
  float* largest;  ///< -infinity at first
  float* sum;      ///< of e^(score - largest)
};

/// Makes each product q . k that is seen e^(scale * product - largest so far) and each other one 0.
/// `factors`: by what sums of former blocks must be multiplied. scale > 0.
void continue_softmax(const score_rows& rows, float* products, float scale, const running_softmax& softmax,
                      float* factors);

/// result[row] = largest + log(sum), for `count` rows
void log_sum_exp_of(const running_softmax& softmax, std::int64_t count, float* result);

/// to = factor * from
void scale_row(const float* from, float factor, float* to, std::int64_t size);

/// result[row] = a . b, in 16 sums that a fixed tree combines, for `count` rows of `size`
void dot_rows(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride,
              std::int64_t count, std::int64_t size, float* result);

/// Of products q . k and gradients dout . v makes the probabilities and the gradients of the products, 0
/// where nothing is seen. `delta` is dout . out of each row.
void softmax_gradient(const score_rows& rows, float* products, float* gradients, float scale,
                      const float* log_sum_exp, const float* delta);

}  // namespace troupe::cpu
