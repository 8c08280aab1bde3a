#pragma once
#include "troupe/autograd/functions.hpp"

namespace troupe::nn {

/// The squared error of a prediction and targets of the same shape, in f32, bf16 or f16. Each element counts
/// as a sample, so that a Pipeline minimizes the mean over all elements of a batch; num_correct is always 0.
class MSELoss {
 public:
  /// The sums over the batch; backward gives `gradient_scale` times the gradient of the summed loss.
  loss_result operator()(const variable& prediction, const tensor& targets, double gradient_scale) const {
    return mse_loss(prediction, targets, gradient_scale);
  }
  std::int64_t num_counted(const tensor& targets) const { return targets.num_elements(); }
};

}  // namespace troupe::nn
