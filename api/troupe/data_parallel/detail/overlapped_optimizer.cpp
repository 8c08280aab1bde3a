#include "troupe/data_parallel/detail/overlapped_optimizer.hpp"

#include <stdexcept>
#include <utility>

#include "troupe/optim/detail/gradients_of.hpp"

namespace troupe::detail {

overlapped_optimizer::overlapped_optimizer(std::shared_ptr<gradient_reducer> reducer,
                                           const std::vector<named_parameter>& all,
                                           const optim::Optimizer& optimizer)
    : reducer_(std::move(reducer)) {
  for (const auto& each : all)
    if (!each.target->requires_gradient) frozen_.push_back(each);
  frozen_state_ = optim::make_state(optimizer, frozen_);
  for (std::size_t bucket = 0; bucket < reducer_->num_buckets(); ++bucket) {
    auto parameters = reducer_->parameters_of(bucket);
    auto state = optim::make_state(optimizer, parameters);
    parts_.push_back({std::move(parameters), std::move(state), {}});
  }
}

overlapped_optimizer::~overlapped_optimizer() {
  try {
    reducer_->finish();
  } catch (...) {  // the group keeps the failure and throws it at its next use
  }
}

void overlapped_optimizer::apply(std::uint64_t step) {
  require_sums();
  for (auto& part : parts_)
    for (const auto& each : part.parameters) {
      if (!each.target->needs_step()) continue;
      each.target->has_gradient = false;
      part.to_step.insert(each.target);
    }
  reducer_->on_reduced([this, step](const reduced_chunk& chunk) { step_chunk(chunk, step); });
}

// Of a step that is pending, `apply` has taken note: no parameter has a gradient any more.
void overlapped_optimizer::zero_grad() {
  for (const auto& part : parts_) optim::detail::drop_gradients(part.parameters);
  optim::detail::drop_gradients(frozen_);
  reducer_->forget_sums();
}

/// Gradients that are not averaged would make the members' weights diverge.
void overlapped_optimizer::require_sums() {
  for (const auto& part : parts_)
    for (const auto& each : part.parameters)
      if (each.target->has_gradient && !reducer_->has_sums())
        throw std::logic_error(
            "[DataParallel] expected gradients that are averaged over all replicas, got those of "
            "this process for " +
            each.name +
            ": use DataParallel::backward instead of the loss's, and end no_sync() before the "
            "last backward pass of a step");
  reducer_->forget_sums();
}

bool overlapped_optimizer::steps_by_chunk(const part& bucket) const {
  return bucket.state->is_elementwise() && reducer_->reduces_by_chunk();
}

void overlapped_optimizer::step_chunk(const reduced_chunk& chunk, std::uint64_t step) {
  auto& part = parts_[chunk.bucket];
  if (steps_by_chunk(part)) {
    for (const auto& each : reducer_->parts_in(chunk))
      if (auto* target = part.parameters[each.index].target; part.to_step.contains(target))
        part.state->apply_part(step, each, optim::elements_of(target->gradient_in_update(), each));
    if (!chunk.is_last) return;
    auto stepped = std::exchange(part.to_step, {});
    for (std::size_t index = 0; index < part.parameters.size(); ++index) {
      auto* target = part.parameters[index].target;
      if (!stepped.contains(target)) continue;
      part.state->end_parts(step, index);
      target->mark_stepped_with_converted();
    }
  } else if (chunk.is_last) {
    // As they were when `apply` was called: one may have been frozen since.
    std::vector<parameter*> frozen_since;
    for (auto* each : std::exchange(part.to_step, {})) {
      each->has_gradient = true;
      if (!std::exchange(each->requires_gradient, true)) frozen_since.push_back(each);
    }
    part.state->apply(step);
    for (auto* each : frozen_since) each->requires_gradient = false;
  }
}

std::vector<named_tensor> overlapped_optimizer::state() const {
  reducer_->finish();
  std::vector<named_tensor> result;
  for (auto bucket = parts_.size(); bucket-- > 0;)
    for (auto& each : parts_[bucket].state->state()) result.push_back(std::move(each));
  for (auto& each : frozen_state_->state()) result.push_back(std::move(each));
  return result;
}

}  // namespace troupe::detail
