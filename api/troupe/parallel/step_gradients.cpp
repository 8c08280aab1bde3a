#include "troupe/parallel/step_gradients.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "troupe/ops/reduction.hpp"
#include "troupe/optim/gradients_of.hpp"

namespace troupe {

step_gradients::step_gradients(const numerics& how, const stage_reductions& reductions,
                               std::vector<placed_parameter> counted, std::vector<parameter*> stepped,
                               tied_gradients tied)
    : how_(how),
      num_reductions_((tied.has_shared() ? 1 : 0) + (how.needs_norm() ? 1 : 0)),
      reductions_(reductions),
      counted_(std::move(counted)),
      stepped_(std::move(stepped)),
      tied_(std::move(tied)) {
  if (how.scales_loss()) scaler_.emplace(how.loss_scale);
}

tensor step_gradients::share_of(int reduction) {
  if (reduction == reductions_.tied) return tied_.share();
  if (reduction == reductions_.norms) return gradient_norms(counted_);
  throw std::logic_error("[module_program::share_of] expected one of " +
                         std::to_string(reductions_.stages.size()) + " reductions, got number " +
                         std::to_string(reduction));
}

void step_gradients::reduce(int reduction, const std::vector<tensor>& shares) {
  if (reduction == reductions_.tied)
    tied_.combine(shares);
  else
    use_norm(combined_norm(shares));
  reduced_.insert(reduction);
}

/// Loss scale and clipping in one pass over the gradients, if any is needed.
void step_gradients::use_norm(double norm) {
  is_finite_ = !scaler_ || std::isfinite(norm);
  if (!is_finite_) return optim::drop_gradients(stepped_);
  auto scale = loss_scale();
  auto clip = how_.clip_grad_norm > 0 ? clipping_factor(norm / scale, how_.clip_grad_norm) : 1;
  if (auto factor = clip / scale; factor != 1) scale_all(optim::gradients_of(stepped_), factor);
}

std::optional<std::uint64_t> step_gradients::optimizer_step(std::uint64_t step) const {
  if (reduced_.size() != num_reductions_)
    throw std::logic_error("[module_program::apply] expected " + std::to_string(num_reductions_) +
                           " reductions before step " + std::to_string(step) + ", got " +
                           std::to_string(reduced_.size()) + ": plan them as reductions_of says");
  if (!is_finite_) return {};
  return step - (scaler_ ? scaler_->num_skipped() : 0);
}

void step_gradients::stepped() {
  if (scaler_) scaler_->update(is_finite_);
  discard();
}

void step_gradients::discard() {
  tied_.stepped();
  reduced_.clear();
  is_finite_ = true;
}

std::vector<named_tensor> step_gradients::state() const {
  return scaler_ ? scaler_->state() : std::vector<named_tensor>();
}

}  // namespace troupe
