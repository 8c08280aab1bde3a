#pragma once
#include "troupe/autograd/functions.hpp"
#include "troupe/ops/cross_entropy.hpp"

namespace troupe::nn {

/// Softmax cross entropy: the loss of logits [..., C] and labels i64, i32 or u8 [...],
/// over the labels that are not cross_entropy_options::ignore_index.
class CrossEntropy {
 public:
  CrossEntropy() = default;
  explicit CrossEntropy(cross_entropy_options options) : options_(options) {}
  const cross_entropy_options& options() const { return options_; }

  /// The sums over the batch; backward gives `gradient_scale` times the gradient of the summed loss.
  loss_result operator()(const variable& logits, const tensor& labels, double gradient_scale) const {
    return cross_entropy(logits, labels, gradient_scale, options_);
  }
  /// The labels that are not ignored.
  std::int64_t num_counted(const tensor& labels) const { return troupe::num_counted(labels, options_); }

 private:
  cross_entropy_options options_;
};

}  // namespace troupe::nn
