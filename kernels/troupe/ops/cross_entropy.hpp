#pragma once
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What one batch of scores says about its labels. Sums, so that they add up over batches.
struct cross_entropy_result {
  double loss_sum = 0;           ///< sum over samples of log(sum_j exp(z_j)) - z_label
  std::int64_t num_correct = 0;  ///< samples whose largest score, the first of equals, is their label's
};

/// Softmax cross entropy. logits: f32 [B, C] with C >= 1; labels: i64 or u8 [B], each in [0, C). The
/// arithmetic inside a row is f64 and uses no mathematics library, so its bits are the same everywhere.
/// Throws std::invalid_argument, naming the sample, for a label outside the range.
cross_entropy_result cross_entropy_forward(const tensor& logits, const tensor& labels);

/// The gradient of scale * loss_sum: scale * (softmax(z) - onehot(label)), [B, C]. Arguments as above.
tensor cross_entropy_backward(const tensor& logits, const tensor& labels, double scale);

}  // namespace troupe
