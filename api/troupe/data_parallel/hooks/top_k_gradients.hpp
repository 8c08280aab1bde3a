#pragma once
#include <cstdint>

#include "troupe/data_parallel/hooks/compressed_hook.hpp"

namespace troupe {

struct top_k_gradients_options {
  /// The fraction of each parameter's elements that a replica sends, in (0, 1]; at least one element.
  double ratio = 0.01;
  /// Parameters with fewer elements (biases, norms) are sent completely, and their velocities are kept.
  std::int64_t min_compressed_elements = 1024;
  /// Momentum correction, in [0, 1): replicas accumulate and send velocities instead of gradients, and reset
  /// them where they were sent. Use SGD without momentum as the optimizer then.
  double momentum = 0;
  /// Number of first steps in which all elements are sent: gradients change the most there.
  std::int64_t dense_steps = 0;
};

/// Every virtual replica sends only the elements of largest magnitude of each parameter's gradient, with
/// their indices, and adds the rest to the gradient of its next step (error feedback): Lin et al. 2018, "Deep
/// Gradient Compression", algorithm 4. With gradient g, momentum m, velocity u and residual v:
///
///     u = m u + g,  v = v + u;  send v where |v| is among the k largest, and make u and v zero there.
///
/// Indices and values (8 bytes per element) are all-gathered and added in the order of replicas; what is sent
/// completely is summed in f32 in the fixed tree. So the bits do not depend on which member hosts which
/// replica. A gradient that is not finite is sent as NaN and leaves u and v of all parameters in its bucket
/// unchanged. u and
/// v contain the loss scale: change that scale rarely. Gradients must be in CPU memory.
///
///     replicated.register_comm_hook(std::make_shared<top_k_gradients>());
///
/// state() has u and v of each replica, and the number of steps.
class top_k_gradients : public compressed_hook {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit top_k_gradients(const top_k_gradients_options& options = {});

 private:
  /// Throws std::invalid_argument for a parameter of more than 2^31 - 1 elements.
  std::vector<segment> segments_of(const gradient_bucket& bucket, std::size_t num_compressors) const override;

  top_k_gradients_options options_;
};

}  // namespace troupe
