#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/gradients/gradient_compressor.hpp"

namespace troupe::gradients {

/// How many of `count` > 0 elements a fraction in (0, 1] is: rounded up, at least one.
std::int64_t num_largest(double fraction, std::int64_t count);

/// What top-k with error feedback (see top_k_gradients) keeps of some elements of one replica's gradient.
struct unsent_gradient {
  tensor residual;       ///< v, f32 [n]
  tensor velocity = {};  ///< u, f32 [n]; undefined without momentum
  float momentum = 0;

  /// u = m u + g, v = v + u; without momentum v = v + g. `gradient`: f32 [n], finite.
  void add(const tensor& gradient) const;
};

/// Adds `gradient`, f32 [n], to what is unsent, and takes the k elements of largest magnitude out of it,
/// which become 0 there, in the velocity too unless all are taken. Returns them as a message, i32 [2k]:
/// ascending indices, then the bits of the values. If the gradient is not finite, nothing is added or taken
/// and the values are NaN. 1 <= k <= n < 2^31.
tensor take_largest(const tensor& gradient, const unsent_gradient& unsent, std::int64_t k);

/// A message of one element, 0: of a replica that has no gradient.
tensor nothing_largest();

/// The sum of messages, one after the other, as f32 [n]. Throws std::logic_error for one that is no message
/// of n elements.
tensor sum_of_largest(const std::vector<tensor>& messages, std::int64_t n);

/// Sends a fraction of the elements of each part of a parameter's gradient, as take_largest does; all of them
/// in f32 if the fraction is 1.
class sparse_gradient final : public gradient_compressor {
 public:
  /// `fraction`: in (0, 1]. `extents`, `parameter`: its shape and name. `momentum`: in [0, 1).
  sparse_gradient(double fraction, const shape& extents, std::string parameter, double momentum = 0);

  /// Without a gradient the residual waits for the next one.
  tensor message_of(const gradient_part& part, const tensor& gradient) override;
  std::vector<tensor> sums_from(const gradient_part& part, const std::vector<tensor>& received) override;
  void prepare_uncompressed(tensor gradient) override;
  std::vector<named_tensor> state() const override;

 private:
  bool sends_all() const { return fraction_ == 1; }
  unsent_gradient unsent_of(std::int64_t first, std::int64_t count) const;

  double fraction_;
  std::string parameter_;
  unsent_gradient unsent_;  ///< of the parameter's shape
};

}  // namespace troupe::gradients
