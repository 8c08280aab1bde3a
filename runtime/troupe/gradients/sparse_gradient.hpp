#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/gradients/gradient_compressor.hpp"

namespace troupe::gradients {

/// How many of `count` > 0 elements a fraction in (0, 1] is: rounded up, at least one.
std::int64_t num_largest(double fraction, std::int64_t count);

/// Top-k with error feedback (see top_k_gradients), of some elements of one replica's gradient. Adds
/// `gradient`, f32 [n], to `residual`, f32 [n], and takes the k elements of largest magnitude out of it,
/// which become 0 there. Returns them as a message, i32 [2k]: ascending indices, then the bits of the values.
/// If the gradient is not finite, the residual stays as it was and the values are NaN. 1 <= k <= n < 2^31.
tensor take_largest(const tensor& gradient, tensor residual, std::int64_t k);

/// A message of one element, 0: of a replica that has no gradient.
tensor nothing_largest();

/// The sum of messages, one after the other, as f32 [n]. Throws std::logic_error for one that is no message
/// of n elements.
tensor sum_of_largest(const std::vector<tensor>& messages, std::int64_t n);

/// Sends a fraction of the elements of each part of a parameter's gradient, as take_largest does.
class sparse_gradient final : public gradient_compressor {
 public:
  /// `fraction`: in (0, 1]. `extents`, `parameter`: its shape and name.
  sparse_gradient(double fraction, const shape& extents, std::string parameter);

  /// Without a gradient the residual waits for the next one.
  tensor message_of(const gradient_part& part, const tensor& gradient) override;
  std::vector<tensor> sums_from(const gradient_part& part, const std::vector<tensor>& received) override;
  std::vector<named_tensor> state() const override;

 private:
  double fraction_;
  std::string parameter_;
  tensor residual_;  ///< of the parameter's shape
};

}  // namespace troupe::gradients
