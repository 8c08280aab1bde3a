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
        bool is_after_all = other.kind == reduce_gradient || other.kind == apply || other.kind == all_reduce;
        bool is_next = other.kind == backward || other.kind == weight_gradient;
        return is_after_all || (is_next && other.stage == op.stage);
      });
      auto room = static_cast<int>(next - actions.begin() - at);
      action weights{op.stage, weight_gradient, op.microbatch};
      actions.insert(actions.begin() + at + 1 + drawn_below(room, random), weights);
    }
}

layout::mesh_axis drawn_axis(std::mt19937& random) {
  return layout::mesh_axes[drawn_index(layout::mesh_axes.size(), random)];
}

std::vector<int> drawn_stages(int num_stages, std::mt19937& random) {
  std::vector<int> drawn;
  for (int stage = 0; stage < num_stages; ++stage)
    if (drawn_below(2, random) == 0) drawn.push_back(stage);
  return drawn;
}

/// Some reductions come before the sums, and some are among lanes.
void draw_reductions(plan_options& options, std::mt19937& random) {
  auto num_before = drawn_below(static_cast<int>(options.reductions.size()) + 1, random);
  for (auto& each : options.reductions) {
    each.before_sums = num_before-- > 0;
    for (auto axis : layout::mesh_axes)
      if (drawn_below(3, random) == 0) each.axes.push_back(axis);
  }
}

std::vector<schedule::joint_kind> drawn_joint(int num_stages, std::mt19937& random) {
  using enum action_kind;
  std::vector<schedule::joint_kind> joint;
  for (int stage : drawn_stages(num_stages, random))
    for (auto kind : {forward, backward, input_gradient, weight_gradient})
      for (auto axis : layout::mesh_axes)
        if (drawn_below(3, random) == 0) joint.push_back({stage, kind, axis});
  return joint;
}

/// Puts U and S of a stage into its device's list: a U before the first use, pairs of S and U between two
/// uses, and an S behind the last one now and then.
void insert_storage(int stage, layout::mesh_axis axis, std::vector<action>& actions, std::mt19937& random) {
  std::vector<action> result;
  bool is_whole = false;
  auto is_use = [stage](const action& op) { return op.stage == stage && reads_parameters(op.kind); };
  for (auto op = actions.begin(); op != actions.end(); ++op) {
    bool must = is_use(*op), may = std::any_of(op, actions.end(), is_use) && drawn_below(4, random) == 0;
    if (!is_whole && (must || may)) {
      result.push_back({stage, action_kind::unshard, 0, axis});
      is_whole = true;
    }
    result.push_back(*op);
    bool is_over = op->stage == stage && op->kind == action_kind::apply;
    bool has_applied = std::any_of(actions.begin(), op, [stage](const action& before) {
      return before.stage == stage && before.kind == action_kind::apply;
    });
    if (is_whole && !is_over && !has_applied && drawn_below(4, random) == 0) {
      result.push_back({stage, action_kind::reshard, 0, axis});
      is_whole = false;
    }
  }
  actions = std::move(result);
}

}  // namespace

plan drawn_split_plan(std::mt19937& random) {
  auto drawn = make_plan(drawn_options(6, 5, random));
  split_backwards(drawn, random);
  return drawn;
}

plan drawn_mesh_plan(std::mt19937& random, bool has_joint) {
  auto options = drawn_options(4, 4, random);
  options.num_replicas = 1 + drawn_below(3, random);
  options.num_slices = 1 + drawn_below(2, random);
  options.has_equal_replicas = drawn_below(2, random) == 0;
  options.averages_weights = drawn_below(5, random) == 0;
  options.stages_with_common_parameters = drawn_stages(options.num_stages, random);
  draw_reductions(options, random);
  if (has_joint) options.joint = drawn_joint(options.num_stages, random);
  auto drawn = make_plan(options);
  split_backwards(drawn, random);
  bool may_shard = drawn.flush_every == 1 && !schedule::averages_weights(drawn);
  for (int stage = 0; may_shard && stage < drawn.num_stages; ++stage)
    if (drawn_below(3, random) == 0)
      insert_storage(
          stage, drawn_axis(random),
          drawn.devices[static_cast<std::size_t>(drawn.device_of_stage[static_cast<std::size_t>(stage)])],
          random);
  return drawn;
}

execution::pass_kind pass_of(const plan& running) {
  return running.kind == schedule_kind::forward_only ? execution::pass_kind::evaluate
                                                     : execution::pass_kind::train;
}

traced_stages::traced_stages(const plan& running) : num_stages_(running.num_stages) {
  for (int lane = 0; lane < running.num_running_lanes(); ++lane)
    for (int stage = 0; stage < running.num_stages; ++stage)
      stages_.push_back(std::make_unique<traced_program>(running, stage, lane));
}

std::vector<std::uint64_t> traced_stages::results() const {
  std::vector<std::uint64_t> all;
  for (const auto& each : stages_) all.push_back(each->result());
  return all;
}

int receiver_of(const transport::tensor_tag& tag, const plan& running) {
  auto lane = running.mesh.lane_at(static_cast<int>(tag.replica), static_cast<int>(tag.slice));
  return running.job_device(lane, running.device_of_stage[tag.stage]);
}

test_device::test_device(const plan& running, int device, traced_stages& stages, sender send,
                         std::uint64_t num_batches)
    : send_(std::move(send)),
      interpreter_(
          {.running = running, .device = device, .pass = pass_of(running), .num_batches = num_batches},
          [&stages, lane = running.lane_of(device)](int stage) -> program::stage_program& {
            return stages.at(stage, lane);
          },
          box_, *this) {}

bool test_device::run_next() {
  if (!begun_) {
    interpreter_.begin_step(step_);
    samples_.reset();
    begun_ = true;
    if (!interpreter_.has_batch(step_)) interpreter_.skip_step();
  }
  if (interpreter_.is_at_end()) {
    begun_ = false;
    ++step_;
    return true;
  }
  if (interpreter_.run_next()) return true;
  if (!interpreter_.needs_samples()) return false;
  samples_ = traced_samples(interpreter_.running(), interpreter_.assignment().batch_of(step_));
  return true;
}

plan_position test_device::position() const {
  if (!begun_) return {step_, 0};
  if (interpreter_.is_at_end()) return {step_ + 1, 0};
  return {step_, static_cast<std::uint32_t>(interpreter_.position())};
}

devices_in_turns::devices_in_turns(const plan& running, traced_stages& stages, std::uint64_t num_batches)
    : running_(running) {
  auto send = [this](const transport::tensor_tag& tag, tensor value) {
    under_way_.emplace_back(tag, std::move(value));
  };
  for (int device = 0; device < running.num_running_lanes() * running.num_devices(); ++device)
    devices_.emplace_back(running, device, stages, send, num_batches);
}

void devices_in_turns::arrive(std::mt19937& random) {
  auto chosen = under_way_.begin() + drawn_below(static_cast<int>(under_way_.size()), random);
  auto [tag, value] = std::move(*chosen);
  under_way_.erase(chosen);
  devices_[static_cast<std::size_t>(receiver_of(tag, running_))].take(tag, std::move(value));
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
