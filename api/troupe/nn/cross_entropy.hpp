#pragma once
#include "troupe/autograd/functions.hpp"

namespace troupe::nn {

/// Softmax cross entropy: the loss of logits f32 [B, C] and labels i64 or u8 [B].
class CrossEntropy {
 public:
  /// The sums over the batch; backward gives `gradient_scale` times the gradient of the summed loss.
  loss_result operator()(const variable& logits, const tensor& labels, double gradient_scale) const {
    return cross_entropy(logits, labels, gradient_scale);
  }
};

}  // namespace troupe::nn
