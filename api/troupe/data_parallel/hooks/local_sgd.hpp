#pragma once
#include "troupe/data_parallel/hooks/step_count.hpp"
#include "troupe/nn/module.hpp"

namespace troupe {

/// Replaces the values of all parameters by their means over the members, on all members.
void average_parameters(nn::Module& model, communicator& group);

struct local_sgd_options {
  /// Steps between two averages, >= 1. Larger: less traffic, but the members' weights differ more.
  std::int64_t period = 4;
  /// Number of first steps in which gradients are all-reduced as usual ("post-local SGD", Lin et al. 2020).
  std::int64_t dense_steps = 0;
};

/// Local SGD: every member trains on its own gradients, and every few steps the members' weights are averaged
/// (Stich 2019, "Local SGD converges fast and communicates little"):
///
///     auto local = std::make_shared<local_sgd>(local_sgd_options{.period = 8});
///     replicated.register_comm_hook(local);
///     for (...) {
///       replicated.backward(...);
///       optimizer->apply(step);
///       local->end_step(model, group);
///     }
///
/// Between two averages the members' weights differ: take snapshots and measure accuracy after an average.
/// The optimizers' state is not averaged. Each member must host one virtual replica.
class local_sgd : public comm_hook {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit local_sgd(const local_sgd_options& options = {});
  /// Throws std::invalid_argument, on every member, unless each hosts one virtual replica.
  void prepare(const std::vector<gradient_bucket>& buckets) override;
  std::unique_ptr<bucket_reduction> begin(gradient_bucket& bucket, communicator& group) override;
  /// The number of steps, i64 [1].
  std::vector<named_tensor> state() override { return {{"local_sgd.steps", steps_.value()}}; }

  /// All members call it after the optimizer's step. Averages the parameters every `period` steps; returns
  /// whether it did.
  bool end_step(nn::Module& model, communicator& group);

 private:
  local_sgd_options options_;
  step_count steps_;
};

}  // namespace troupe
