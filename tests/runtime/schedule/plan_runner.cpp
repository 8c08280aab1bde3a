#include "runtime/schedule/plan_runner.hpp"

#include <algorithm>

namespace troupe::testing {
namespace {

/// Are these 0, 1, 2, ..., apart from repetitions?
bool without_gaps(const std::set<int>& ports) {
  return ports.empty() || (*ports.begin() == 0 && *ports.rbegin() + 1 == static_cast<int>(ports.size()));
}

/// Those that a stage takes part in, in its first `num_steps` optimizer steps.
std::vector<std::size_t> reductions_of(int stage, const plan& run, int num_steps) {
  std::vector<std::size_t> numbers;
  auto end =
      run.reductions.size() / static_cast<std::size_t>(run.flush_every) * static_cast<std::size_t>(num_steps);
  for (std::size_t number = 0; number < end; ++number)
    if (std::ranges::count(run.reductions[number].stages, stage) > 0) numbers.push_back(number);
  return numbers;
}

}  // namespace

bool plan_runner::runs_soundly() {
  if (!edges_are_sound()) return false;
  while (!broken_ && any_device_steps()) continue;
  return !broken_ && everything_done();
}

bool plan_runner::edges_are_sound() const {
  for (const auto& each : run_.edges)
    if (each.from < 0 || each.from >= each.to || each.to >= run_.num_stages) return false;
  for (int stage = 0; stage < run_.num_stages; ++stage) {
    std::set<int> inputs, outputs;
    for (const auto& each : run_.edges) {
      if (each.to == stage && !inputs.insert(each.input).second) return false;
      if (each.from == stage) outputs.insert(each.output);
    }
    if (!without_gaps(inputs) || !without_gaps(outputs)) return false;
    if (outputs.empty() != (stage + 1 == run_.num_stages)) return false;
  }
  return true;
}

bool plan_runner::any_device_steps() {
  bool moved = false;
  for (std::size_t device = 0; device < next_.size(); ++device) {
    if (next_[device] == run_.devices[device].size()) continue;
    const auto& op = run_.devices[device][next_[device]];
    if (!is_allowed(op, static_cast<int>(device))) broken_ = true;
    if (broken_ || !inputs_are_there(op)) continue;
    ++next_[device];
    perform(op, device);
    moved = true;
  }
  return moved;
}

/// What is wrong with an action whatever the others do.
bool plan_runner::is_allowed(const action& op, int device) const {
  if (op.stage < 0 || op.stage >= run_.num_stages) return false;
  if (num_applied(op.stage) == run_.flush_every) return false;
  if (run_.device_of_stage.at(static_cast<std::size_t>(op.stage)) != device) return false;
  if (op.kind == action_kind::apply) return op.microbatch == num_applied(op.stage);
  if (is_of_storage(op.kind)) return op.microbatch == 0 && run_.flush_every == 1;
  auto count = op.kind == action_kind::reduce_gradient ? static_cast<int>(run_.reductions.size())
                                                       : run_.num_microbatches;
  return op.microbatch >= 0 && op.microbatch < count;
}

bool plan_runner::inputs_are_there(const action& op) const {
  if (is_of_storage(op.kind)) return true;
  if (op.kind == action_kind::weight_gradient) return gradients_.contains({op.stage, op.microbatch});
  if (op.kind == action_kind::apply) return true;
  if (op.kind == action_kind::reduce_gradient) {
    auto number = static_cast<std::size_t>(op.microbatch);
    return std::ranges::all_of(run_.reductions[number].stages, [&](int stage) {
      return stage == op.stage || shares_.contains({number, stage});
    });
  }
  bool is_forward = op.kind == action_kind::forward;
  for (std::size_t i = 0; i < run_.edges.size(); ++i) {
    bool is_needed = (is_forward ? run_.edges[i].to : run_.edges[i].from) == op.stage;
    if (is_needed && !(is_forward ? tensors_ : sent_back_).contains({i, op.microbatch})) return false;
  }
  return is_forward || saved_.contains({op.stage, op.microbatch});
}

void plan_runner::perform(const action& op, std::size_t device) {
  auto [stage, kind, number, axis] = op;
  broken_ |= reads_parameters(kind) && is_sharded(stage) && !whole_.contains(stage);
  switch (kind) {
    case action_kind::forward:
      broken_ |= !has_version_for(stage, number);
      broken_ |= forwards_[stage]++ != number || !saved_.insert({stage, number}).second;
      for (std::size_t i = 0; i < run_.edges.size(); ++i)
        if (run_.edges[i].from == stage) tensors_.insert({i, number});
      break;
    case action_kind::backward:
    case action_kind::input_gradient:
      broken_ |= !gradients_.insert({stage, number}).second;
      for (std::size_t i = 0; i < run_.edges.size(); ++i)
        if (run_.edges[i].to == stage) sent_back_.insert({i, number});
      if (kind == action_kind::input_gradient) break;
      [[fallthrough]];
    case action_kind::weight_gradient:
      broken_ |= number != next_weight_gradient(stage, number);
      ++weights_[stage];
      broken_ |= number / run_.microbatches_per_step() != num_applied(stage);
      break;
    case action_kind::reduce_gradient:
      reductions_[stage].push_back(static_cast<std::size_t>(number));
      broken_ |= !has_all_weights(stage);
      break;
    case action_kind::apply:
      broken_ |= !has_all_weights(stage) || applied_[stage]++ != number;
      broken_ |= reductions_[stage] != reductions_of(stage, run_, num_applied(stage));
      break;
    case action_kind::all_reduce:
      broken_ = true;  // runs one replica
      break;
    case action_kind::unshard:
      broken_ |= !whole_.insert(stage).second;
      break;
    case action_kind::reshard:
      broken_ |= whole_.erase(stage) == 0;
      break;
  }
  offer_share(stage, device);
}

/// All stages do as the first weight gradient of all, which may be that of the last microbatch.
int plan_runner::next_weight_gradient(int stage, int number) {
  if (!descends_) descends_ = run_.flush_every == 1 && number > 0 && number + 1 == run_.num_microbatches;
  auto done = weights_[stage];
  return *descends_ ? run_.num_microbatches - 1 - done : done;
}

bool plan_runner::is_sharded(int stage) const {
  return std::ranges::any_of(run_.devices, [stage](const std::vector<action>& device) {
    return std::ranges::any_of(
        device, [stage](const action& op) { return op.stage == stage && is_of_storage(op.kind); });
  });
}

/// A stage that comes to its R next has given its share.
void plan_runner::offer_share(int stage, std::size_t device) {
  const auto& actions = run_.devices[device];
  for (auto at = next_[device]; at < actions.size(); ++at) {
    if (actions[at].stage != stage || is_of_storage(actions[at].kind)) continue;
    if (actions[at].kind == action_kind::reduce_gradient)
      shares_.insert({static_cast<std::size_t>(actions[at].microbatch), stage});
    return;
  }
}

bool plan_runner::has_all_weights(int stage) const {
  auto found = weights_.find(stage);
  return is_training() && found != weights_.end() &&
         found->second == run_.microbatches_per_step() * (num_applied(stage) + 1);
}

int plan_runner::num_applied(int stage) const {
  auto found = applied_.find(stage);
  return found == applied_.end() ? 0 : found->second;
}

/// The version that the last A made, or the one before; at the loss the last one only.
bool plan_runner::has_version_for(int stage, int microbatch) const {
  int step = microbatch / run_.microbatches_per_step();
  int applied = num_applied(stage);
  return step == applied || (step == applied + 1 && stage + 1 < run_.num_stages);
}

bool plan_runner::everything_done() const {
  for (std::size_t device = 0; device < next_.size(); ++device)
    if (next_[device] != run_.devices[device].size()) return false;
  auto cells = static_cast<std::size_t>(run_.num_stages) * static_cast<std::size_t>(run_.num_microbatches);
  if (saved_.size() != cells || gradients_.size() != (is_training() ? cells : 0)) return false;
  for (int stage = 0; stage < run_.num_stages; ++stage)
    if (num_applied(stage) != (is_training() ? run_.flush_every : 0)) return false;
  return true;
}

}  // namespace troupe::testing
