#pragma once
#include <optional>

#include "bench/compute/compute_models.hpp"
#include "troupe/autograd/captured_pass.hpp"

namespace troupe::bench {

/// How a step's kernels come to a GPU: each by itself, or forward and backward pass at once, as a CUDA graph.
enum class queueing { each_kernel, recorded };

/// Trains a model, step after step.
class compute_training {
 public:
  /// The model outlives it. On the CPU nothing is recorded.
  compute_training(compute_model& model, queueing how);
  /// The next step, from number 0; returns its mean loss.
  double step();

 private:
  double recorded_step();

  compute_model& model_;
  std::unique_ptr<optim::optimizer_state> optimizer_;
  std::uint64_t number_ = 0;
  // What the recording reads and writes.
  compute_batch batch_;
  tensor loss_sum_;
  std::optional<captured_pass> pass_;
};

}  // namespace troupe::bench
