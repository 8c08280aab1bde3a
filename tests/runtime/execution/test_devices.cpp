#include "runtime/execution/test_devices.hpp"

#include <algorithm>

#include "runtime/schedule/drawn_plans.hpp"

namespace troupe::testing {
namespace {

/// Splits some backwards: the weight gradient comes later, but before the next one of its stage, and
/// before all reductions.
void split_backwards(plan& changed, std::mt19937& random) {
  using enum action_kind;
  for (auto& actions : changed.devices)
    for (auto at = static_cast<std::ptrdiff_t>(actions.size()); at-- > 0;) {
      auto& op = actions[static_cast<std::size_t>(at)];
      if (op.kind != backward || drawn_below(2, random) == 0) continue;
      op.kind = input_gradient;
      auto next = std::find_if(actions.begin() + at, actions.end(), [&op](const action& other) {
        bool is_after_all = other.kind == reduce_gradient || other.kind == apply;
        bool is_next = other.kind == backward || other.kind == weight_gradient;
        return is_after_all || (is_next && other.stage == op.stage);
      });
      auto room = static_cast<int>(next - actions.begin() - at);
      action weights{op.stage, weight_gradient, op.microbatch};
      actions.insert(actions.begin() + at + 1 + drawn_below(room, random), weights);
    }
}

}  // namespace

plan drawn_split_plan(std::mt19937& random) {
  auto drawn = make_plan(drawn_options(6, 5, random));
  split_backwards(drawn, random);
  return drawn;
}

execution::pass_kind pass_of(const plan& running) {
  return running.kind == schedule_kind::forward_only ? execution::pass_kind::evaluate
                                                     : execution::pass_kind::train;
}

traced_stages::traced_stages(const plan& running) {
  for (int stage = 0; stage < running.num_stages; ++stage)
    stages_.push_back(std::make_unique<traced_program>(running, stage));
}

std::vector<std::uint64_t> traced_stages::results() const {
  std::vector<std::uint64_t> all;
  for (const auto& each : stages_) all.push_back(each->result());
  return all;
}

test_device::test_device(const plan& running, int device, traced_stages& stages, sender send)
    : send_(std::move(send)),
      interpreter_(
          {.running = running, .device = device, .pass = pass_of(running)},
          [&stages](int stage) -> program::stage_program& { return stages.at(stage); }, box_, *this) {}

bool test_device::run_next() {
  if (!begun_) {
    interpreter_.begin_step(step_);
    samples_.reset();
    begun_ = true;
  }
  if (interpreter_.is_at_end()) {
    begun_ = false;
    ++step_;
    return true;
  }
  if (interpreter_.run_next()) return true;
  if (!interpreter_.needs_samples()) return false;
  samples_ = traced_samples(interpreter_.running(), step_);
  return true;
}

plan_position test_device::position() const {
  if (!begun_) return {step_, 0};
  if (interpreter_.is_at_end()) return {step_ + 1, 0};
  return {step_, static_cast<std::uint32_t>(interpreter_.position())};
}

devices_in_turns::devices_in_turns(const plan& running, traced_stages& stages) : running_(running) {
  auto send = [this](const transport::tensor_tag& tag, tensor value) {
    under_way_.emplace_back(tag, std::move(value));
  };
  for (int device = 0; device < running.num_devices(); ++device)
    devices_.emplace_back(running, device, stages, send);
}

void devices_in_turns::arrive(std::mt19937& random) {
  auto chosen = under_way_.begin() + drawn_below(static_cast<int>(under_way_.size()), random);
  auto [tag, value] = std::move(*chosen);
  under_way_.erase(chosen);
  devices_[static_cast<std::size_t>(running_.device_of_stage[tag.stage])].take(tag, std::move(value));
}

bool devices_in_turns::run_to(const cut& end, std::mt19937& random) {
  auto is_there = [&](std::size_t device) { return devices_[device].position() >= end.devices[device]; };
  for (bool moved = true; moved;) {
    moved = false;
    auto first = drawn_index(devices_.size(), random);
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      auto device = (first + i) % devices_.size();
      moved |= !is_there(device) && devices_[device].run_next();
      if (under_way_.empty() || (moved && drawn_below(2, random) == 0)) continue;
      arrive(random);
      moved = true;
    }
  }
  for (std::size_t device = 0; device < devices_.size(); ++device)
    if (!is_there(device)) return false;
  return true;
}

}  // namespace troupe::testing
