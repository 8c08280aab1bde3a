#include "troupe/fsdp/detail/sharded_optimizer.hpp"

#include <stdexcept>
#include <utility>

namespace troupe::detail {
namespace {

bool is_elementwise(const optim::Optimizer& optimizer) {
  return optim::make_state(optimizer, {})->is_elementwise();
}

}  // namespace

sharded_optimizer::sharded_optimizer(std::shared_ptr<sharded_model> model, const optim::Optimizer& optimizer)
    : model_(std::move(model)), is_elementwise_(detail::is_elementwise(optimizer)) {
  if (!is_elementwise_) model_->own_whole_parameters();
  num_cuts_ = model_->num_cuts();
  auto& gradients = model_->gradients();
  for (std::size_t flat = 0; flat < gradients.num_flats(); ++flat)
    states_.push_back(optim::make_state(optimizer, gradients.flat(flat).pieces()));
  std::vector<named_parameter> frozen;
  for (const auto* each : model_->frozen_flats())
    frozen.insert(frozen.end(), each->pieces().begin(), each->pieces().end());
  frozen_ = optim::make_state(optimizer, frozen);
}

void sharded_optimizer::require_current() const {
  if (num_cuts_ == model_->num_cuts()) return;
  throw std::logic_error(
      "[FullyShardedDataParallel] expected the optimizer that was made last, got one from before the model "
      "was cut anew for an optimizer of whole parameters: make it after that one");
}

void sharded_optimizer::apply(std::uint64_t step) {
  require_current();
  auto& gradients = model_->gradients();
  for (std::size_t flat = 0; flat < gradients.num_flats(); ++flat)
    for (const auto& [name, target] : gradients.flat(flat).parameters())
      if (target->has_gradient && !gradients.has_sums())
        throw std::logic_error(
            "[FullyShardedDataParallel] expected gradients that are averaged over all replicas, got those of "
            "this process for " +
            name +
            ": use FullyShardedDataParallel::backward instead of the loss's, and end no_sync() before the "
            "last backward pass of a step");
  model_->finish_order_check();
  model_->values().begin_step();
  for (auto flat : gradients.order()) {
    gradients.finish(flat);
    states_[flat]->apply(step);
    for (const auto& each : gradients.flat(flat).parameters())
      if (each.target->needs_step()) each.target->mark_stepped();
  }
  gradients.forget_sums();
  model_->values().end_step();
}

std::vector<named_tensor> sharded_optimizer::state() const {
  require_current();
  model_->gradients().finish();
  std::vector<named_tensor> result;
  for (const auto& each : states_)
    for (auto& one : each->state()) result.push_back(std::move(one));
  for (auto& each : frozen_->state()) result.push_back(std::move(each));
  return result;
}

}  // namespace troupe::detail
