#pragma once
#include "troupe/parallel/compression/replica_memory.hpp"
#include "troupe/parallel/compression/step_count.hpp"

namespace troupe {

struct top_k_gradients_options {
  /// The share of each parameter's elements that a replica sends, in (0, 1]; at least one of them.
  double ratio = 0.01;
  /// Parameters with fewer elements are sent whole, and their velocities go on: biases and norms, of which
  /// few elements would come through otherwise.
  std::int64_t whole_below = 1024;
  /// Momentum correction, in [0, 1): velocities are summed up and sent instead of gradients, and begin again
  /// where they were sent. The optimizer is to be SGD without a momentum of its own then.
  double momentum = 0;
  /// The first steps, in which everything is sent: gradients change the most there.
  std::int64_t dense_steps = 0;
};

/// Every virtual replica sends its largest gradients only (by magnitude, in each parameter), with their
/// indices, and adds what it did not send to its next step's (error feedback): Lin et al. 2018, "Deep
/// Gradient Compression", algorithm 4. With g the gradient, m the momentum, u and v what the replica keeps:
///
///     u = m u + g,  v = v + u;  send v where |v| is among the k largest, and make u and v zero there.
///
/// Indices and values (8 bytes for each) are all-gathered and added in the order of replicas, so the bits do
/// not depend on who hosts them. A replica whose gradient is not finite sends NaN and keeps u and v. What is
/// kept is in the scale of the loss: change that scale rarely. The gradients are in CPU memory.
///
///     replicated.register_comm_hook(std::make_shared<top_k_gradients>());
class top_k_gradients : public comm_hook {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit top_k_gradients(const top_k_gradients_options& options = {});
  /// Throws std::invalid_argument for more than 2^31 - 1 elements in a bucket.
  void prepare(const std::vector<gradient_bucket>& buckets) override;
  std::unique_ptr<bucket_reduction> begin(gradient_bucket& bucket, communicator& group) override;
  /// u and v of each replica, and the number of steps.
  std::vector<named_tensor> state() override;

 private:
  void accumulate(const gradient_bucket& bucket, std::size_t leaf);
  void take_all(gradient_bucket& bucket);
  void take_largest(const gradient_bucket& bucket, std::size_t leaf, std::span<std::int32_t> message);
  std::int64_t num_sent(const bucket_part& part) const;

  top_k_gradients_options options_;
  step_count steps_;
  replica_memory residuals_{"top_k.residual"};   // v
  replica_memory velocities_{"top_k.velocity"};  // u; empty without momentum
};

}  // namespace troupe
