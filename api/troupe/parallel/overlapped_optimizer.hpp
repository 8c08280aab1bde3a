#pragma once
#include <memory>
#include <unordered_set>
#include <vector>

#include "troupe/optim/optimizer.hpp"
#include "troupe/parallel/gradient_reducer.hpp"

namespace troupe {

/// An optimizer that steps the parameters of each bucket when its sum has come, and their elements piece by
/// piece if these step alone. Its state is that of `how`
/// for all parameters, by the same names.
class overlapped_optimizer : public optim::optimizer_state {
 public:
  overlapped_optimizer(std::shared_ptr<gradient_reducer> reducer, const std::vector<named_parameter>& all,
                       const optim::Optimizer& how);
  /// Steps that are to come are made first, unless the group has failed.
  ~overlapped_optimizer() override;
  overlapped_optimizer(const overlapped_optimizer&) = delete;
  overlapped_optimizer& operator=(const overlapped_optimizer&) = delete;

  void apply(std::uint64_t step) override;
  void synchronize() override { reducer_->finish(); }
  std::vector<named_tensor> state() const override;

 private:
  struct part {
    std::vector<named_parameter> parameters;
    std::unique_ptr<optim::optimizer_state> state;
    std::unordered_set<parameter*> to_step;  ///< those with a gradient, from `apply` until they step
  };

  void require_sums();
  bool steps_pieces(const part& of) const;
  void step_piece(const received_piece& which, std::uint64_t step);

  std::shared_ptr<gradient_reducer> reducer_;
  std::vector<part> parts_;  // by bucket
  std::unique_ptr<optim::optimizer_state> of_frozen_;
};

}  // namespace troupe
