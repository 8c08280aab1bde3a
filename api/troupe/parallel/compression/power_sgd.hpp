#pragma once
#include "troupe/parallel/compression/power_sgd_plan.hpp"
#include "troupe/parallel/compression/replica_memory.hpp"
#include "troupe/parallel/compression/step_count.hpp"

namespace troupe {

struct power_sgd_options {
  /// Of the factors, >= 1. Larger: closer to the gradient, and more traffic.
  int rank = 4;
  /// Factors must have so many times fewer elements than the matrix, >= 1; other parameters are reduced as
  /// they are.
  double least_saving = 2;
  /// The first steps, in which everything is reduced as it is: gradients change the most there.
  std::int64_t dense_steps = 0;
  /// Of the first factors.
  std::uint64_t seed = 0;
};

/// Gradients travel as two thin factors of a matrix of low rank: Vogels, Karimireddy, Jaggi 2019, "PowerSGD",
/// algorithms 1 and 2, with warm start and error feedback. A parameter of several axes is the matrix [M, N]
/// with the first of them as rows. For each replica i with gradient G_i and residual E_i, and Q [N, r] from
/// the step before (random in the first one):
///
///     M_i = G_i + E_i,  P = sum over i of M_i Q, orthonormalised,  Q_i = M_i' P,  Q = sum over i of Q_i
///     the result is P Q', and E_i = M_i - P Q_i'
///
/// so that sums of E_i and what was sent are the gradients' sums. Both sums are all-reduced in f32 in the
/// fixed tree over replicas, and the bits do not depend on who hosts them. A gradient that is not finite
/// gives a result that is not and leaves Q and E as they were. What is kept is in the scale of the loss:
/// change that scale rarely. The gradients are in CPU memory.
///
///     replicated.register_comm_hook(std::make_shared<power_sgd>(power_sgd_options{.rank = 2}));
class power_sgd : public comm_hook {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit power_sgd(const power_sgd_options& options = {});
  void prepare(const std::vector<gradient_bucket>& buckets) override;
  std::unique_ptr<bucket_reduction> begin(gradient_bucket& bucket, communicator& group) override;
  /// E of each replica, Q, which all have, and the number of steps.
  std::vector<named_tensor> state() override;

 private:
  power_sgd_options options_;
  step_count steps_;
  std::vector<power_sgd_plan> plans_;  // by bucket
  replica_memory residuals_{"power_sgd.residual"};
};

}  // namespace troupe
