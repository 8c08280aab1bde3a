#pragma once
#include <memory>
#include <vector>

#include "troupe/fsdp/detail/sharded_model.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::detail {

/// An optimizer of this member's pieces, unit by unit as their sums come.
class sharded_optimizer : public optim::optimizer_state {
 public:
  sharded_optimizer(std::shared_ptr<sharded_model> model, const optim::Optimizer& optimizer);

  void apply(std::uint64_t step) override;
  bool is_elementwise() const override { return is_elementwise_; }
  void zero_grad() override { model_->gradients().drop(); }
  void synchronize() override { model_->gradients().finish(); }
  /// Of the pieces, those that are frozen too.
  std::vector<named_tensor> state() const override;

 private:
  void require_current() const;

  std::shared_ptr<sharded_model> model_;
  bool is_elementwise_;
  int num_cuts_ = 0;                                             ///< of the model, when this was made
  std::vector<std::unique_ptr<optim::optimizer_state>> states_;  ///< by flat
  std::unique_ptr<optim::optimizer_state> frozen_;
};

}  // namespace troupe::detail
