#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/gradients/gradient_compressor.hpp"
#include "troupe/gradients/low_rank_factors.hpp"

namespace troupe::gradients {

/// PowerSGD of the gradient of one weight matrix, as one of several replicas sees it. The formulas are those
/// of power_sgd: first_factor is M_i Q, second_factor M_i' P, finish the sum P Q'. The replicas add up both
/// factors.
///
/// Two sums that are not finite give a result that is not finite, and leave residual and Q as they were.
/// Not thread-safe.
class factored_gradient final : public gradient_compressor {
 public:
  /// `factors`: with a rank of at least 1. `parameter`, `seed`: the first Q depends on them. `q`: memory for
  /// Q, f32 [columns, rank], that other replicas in this process use too; undefined: its own.
  factored_gradient(const low_rank_factors& factors, const std::string& parameter, std::uint64_t seed = 0,
                    tensor q = {});

  int num_rounds() const override { return 2; }
  tensor message_of(const gradient_part& part, const tensor& gradient) override;
  std::vector<tensor> sums_from(const gradient_part& part, const std::vector<tensor>& received) override;
  void end_step() override { discard(); }
  std::vector<named_tensor> state() const override;
  std::vector<named_tensor> shared_state() const override;

  /// Adds the residual to `gradient`, f32 [rows * columns], in place, and keeps a handle until the step ends.
  /// Undefined: this replica has none, and its residual waits for its next gradient.
  tensor first_factor(const tensor& gradient);
  /// Whether the sum of the first factors is there.
  bool has_first_sum() const { return p_.defined(); }
  void take_first_sum(const std::vector<tensor>& parts);
  tensor second_factor();
  /// The sum of all replicas' gradients from that of their second factors, f32 [rows * columns]. Ends the
  /// step.
  tensor finish(const std::vector<tensor>& parts);
  /// Forgets an interrupted step.
  void discard();

  /// f32 [rows, columns], of this replica alone.
  const tensor& residual() const { return residual_; }
  /// f32 [columns, rank], the same in all replicas.
  const tensor& q() const { return q_; }

 private:
  void keep_unsent(const tensor& sum_of_second);

  // Constant after construction.
  low_rank_factors factors_;
  std::string parameter_;
  tensor initial_q_;
  // The state.
  tensor residual_, q_;
  // The current step.
  tensor m_;           ///< M_i [rows, columns]; undefined without a gradient
  tensor p_;           ///< the orthonormal P [rows, rank]
  tensor own_second_;  ///< Q_i [columns, rank]
  bool is_finite_ = true;
};

}  // namespace troupe::gradients
