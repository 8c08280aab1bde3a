#include "troupe/parallel/overlapped_optimizer.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

overlapped_optimizer::overlapped_optimizer(std::shared_ptr<gradient_reducer> reducer,
                                           const std::vector<named_parameter>& all,
                                           const optim::Optimizer& how)
    : reducer_(std::move(reducer)) {
  std::vector<named_parameter> frozen;
  for (const auto& each : all)
    if (!each.target->requires_gradient) frozen.push_back(each);
  of_frozen_ = how(std::move(frozen));
  for (std::size_t bucket = 0; bucket < reducer_->num_buckets(); ++bucket) {
    auto parameters = reducer_->parameters_of(bucket);
    auto state = how(parameters);
    parts_.push_back({std::move(parameters), std::move(state), {}});
  }
}

overlapped_optimizer::~overlapped_optimizer() {
  try {
    reducer_->finish();
  } catch (...) {  // a failure stays the group's, and is told to whoever uses that again
  }
}

void overlapped_optimizer::apply(std::uint64_t step) {
  require_sums();
  for (auto& of : parts_)
    for (const auto& each : of.parameters) {
      if (!each.target->is_to_step()) continue;
      each.target->has_gradient = false;
      of.to_step.insert(each.target);
    }
  reducer_->follow([this, step](const received_piece& which) { step_piece(which, step); });
}

/// Gradients of this process only would let the members' weights drift apart.
void overlapped_optimizer::require_sums() {
  for (const auto& of : parts_)
    for (const auto& each : of.parameters)
      if (each.target->has_gradient && !reducer_->holds_sums())
        throw std::logic_error(
            "[DataParallel] expected gradients that are averaged over all replicas, got those of "
            "this process for " +
            each.name +
            ": use DataParallel::backward instead of the loss's, and end no_sync() before the "
            "last backward pass of a step");
  reducer_->forget_sums();
}

bool overlapped_optimizer::steps_pieces(const part& of) const {
  return of.state->steps_elements_alone() && reducer_->sums_come_by_pieces();
}

void overlapped_optimizer::step_piece(const received_piece& which, std::uint64_t step) {
  auto& of = parts_[which.bucket];
  if (steps_pieces(of)) {
    for (const auto& each : reducer_->parts_in(which))
      if (of.to_step.contains(of.parameters[each.index].target)) of.state->apply_to(step, each);
    if (!which.is_last) return;
    for (auto* each : std::exchange(of.to_step, {})) each->stepped_with_converted();
  } else if (which.is_last) {
    for (auto* each : std::exchange(of.to_step, {})) each->has_gradient = true;
    of.state->apply(step);
  }
}

std::vector<named_tensor> overlapped_optimizer::state() const {
  reducer_->finish();
  std::vector<named_tensor> result;
  for (auto bucket = parts_.size(); bucket-- > 0;)
    for (auto& each : parts_[bucket].state->state()) result.push_back(std::move(each));
  for (auto& each : of_frozen_->state()) result.push_back(std::move(each));
  return result;
}

}  // namespace troupe
