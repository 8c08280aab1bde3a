#pragma once
#include <memory>
#include <unordered_set>
#include <vector>

#include "troupe/data_parallel/gradient_reducer.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::detail {

/// An optimizer that steps the parameters of each bucket when its gradient sum arrives, or chunk by chunk if
/// the optimizer is_elementwise(). Its state has the same names as that of `optimizer` for all parameters.
class overlapped_optimizer : public optim::optimizer_state {
 public:
  overlapped_optimizer(std::shared_ptr<gradient_reducer> reducer, const std::vector<named_parameter>& all,
                       const optim::Optimizer& optimizer);
  /// Completes the pending steps, unless the group has failed.
  ~overlapped_optimizer() override;
  overlapped_optimizer(const overlapped_optimizer&) = delete;
  overlapped_optimizer& operator=(const overlapped_optimizer&) = delete;

  void apply(std::uint64_t step) override;
  /// Steps that are pending are completed all the same.
  void zero_grad() override;
  void synchronize() override { reducer_->finish(); }
  std::vector<named_tensor> state() const override;

 private:
  struct part {
    std::vector<named_parameter> parameters;
    std::unique_ptr<optim::optimizer_state> state;
    std::unordered_set<parameter*>
        to_step;  ///< parameters with a gradient that `apply` was called for and that are not stepped yet
  };

  void require_sums();
  bool steps_by_chunk(const part& bucket) const;
  void step_chunk(const reduced_chunk& chunk, std::uint64_t step);

  std::shared_ptr<gradient_reducer> reducer_;
  std::vector<part> parts_;  // by bucket
  std::vector<named_parameter> frozen_;
  std::unique_ptr<optim::optimizer_state> frozen_state_;
};

}  // namespace troupe::detail
