#pragma once
#include "troupe/nn/module.hpp"
#include "troupe/parallel/compression/step_count.hpp"

namespace troupe {

/// The values of all parameters become their means over the members, on all of them.
void average_parameters(nn::Module& model, communicator& group);

struct local_sgd_options {
  /// Steps between averages, >= 1. More: less traffic, and members drift further apart.
  std::int64_t period = 4;
  /// The first steps, in which gradients are reduced as usual ("post-local SGD", Lin et al. 2020).
  std::int64_t dense_steps = 0;
};

/// Every member trains on its own gradients, and every few steps the members' weights are averaged (Stich
/// 2019, "Local SGD converges fast and communicates little"):
///
///     auto local = std::make_shared<local_sgd>(local_sgd_options{.period = 8});
///     replicated.register_comm_hook(local);
///     for (...) {
///       replicated.backward(...);
///       optimizer->apply(step);
///       local->end_step(model, group);
///     }
///
/// Between two averages members have different weights: take snapshots and measure accuracy after an average.
/// State of optimizers is not averaged. Each member hosts one virtual replica.
class local_sgd : public comm_hook {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit local_sgd(const local_sgd_options& options = {});
  /// Throws std::invalid_argument for several replicas of one member.
  void prepare(const std::vector<gradient_bucket>& buckets) override;
  std::unique_ptr<bucket_reduction> begin(gradient_bucket& bucket, communicator& group) override;
  /// The number of steps.
  std::vector<named_tensor> state() override { return {{"local_sgd.steps", steps_.value()}}; }

  /// To be called by all members when their optimizers have stepped: averages the parameters if it is time,
  /// and says so.
  bool end_step(nn::Module& model, communicator& group);

 private:
  local_sgd_options options_;
  step_count steps_;
};

}  // namespace troupe
