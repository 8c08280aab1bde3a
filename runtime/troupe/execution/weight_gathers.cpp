#include "troupe/execution/weight_gathers.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "troupe/execution/replicas/uncharged.hpp"

namespace troupe::execution {

void weight_gathers::begin(const action& op) {
  auto number = num_begun_[op.stage]++;
  auto& parameters = run_.parameters(op.stage);
  if (is_gathered(op.stage) || parameters.weight_buckets().empty()) return;
  parameters.attach_weights();
  auto& one = running_.emplace(op.stage, gather{&op, run_.step(), number}).first->second;
  send_own(one);
  if (take_arrived(one)) return;
  // A forward need not use all of them: training goes on to backwards, which wait for the rest.
  if (run_.options().pass != pass_kind::train || !run_.host().may_wait_within() || !forward_follows(op))
    return;
  std::vector<int> missing;
  for (auto [bucket, owner] : one.missing) missing.push_back(bucket);
  one.is_deferred = parameters.defer_gather(
      missing, [this, stage = op.stage](bool waits) { progress_within(stage, waits); });
}

void weight_gathers::send_only(const action& op) {
  auto number = num_begun_[op.stage]++;
  auto& parameters = run_.parameters(op.stage);
  if (is_gathered(op.stage) || parameters.weight_buckets().empty()) return;
  gather one{&op, run_.step(), number};
  send_own(one);
  // What others send to all is taken, so that all know alike what need not be sent again.
  if (parameters.keeps_weights()) running_.emplace(op.stage, std::move(one));
}

/// Whether the stage's next action is a forward. A W must not come while gathers are deferred.
bool weight_gathers::forward_follows(const action& op) const {
  auto rest = std::span(run_.actions()).subspan(run_.position() + 1);
  auto next = std::ranges::find_if(
      rest, [&op](const action& each) { return each.stage == op.stage && !is_of_storage(each.kind); });
  return next != rest.end() && next->kind == action_kind::forward;
}

/// To those that run the step, or to all, if they keep it. What they own is missing from now on.
void weight_gathers::send_own(gather& one) {
  auto stage = one.op->stage;
  auto& parameters = run_.parameters(stage);
  run_.host().on_gather(*one.op);
  bool keeps = parameters.keeps_weights(), is_first = ever_gathered_.insert(stage).second;
  auto buckets = parameters.weight_buckets();
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    const auto& [owner, is_stepped] = buckets[index];
    if (keeps && !is_stepped && !is_first) continue;
    auto number = static_cast<int>(index);
    if (owner != run_.replica()) {
      one.missing.emplace_back(number, owner);
      continue;
    }
    auto own = uncharged(parameters.weights_in(number));
    for (int to = 0; to < run_.running().mesh.num_replicas; ++to)
      if (to != owner && (keeps || run_.is_run_by(to, one.step)))
        run_.deliver(tag_of(one, number, owner, to), own);
  }
}

void weight_gathers::end(const action& op) {
  auto& parameters = run_.parameters(op.stage);
  if (parameters.keeps_weights()) return;
  parameters.release_weights();
  gathered_.erase(op.stage);
}

/// Or will be: where weights are kept a U after an S may find the one before it under way.
bool weight_gathers::is_gathered(int stage) const {
  return gathered_.contains(stage) || running_.contains(stage);
}

void weight_gathers::mark_stale(int stage) { gathered_.erase(stage); }

bool weight_gathers::may_run(const action& op) {
  auto found = running_.find(op.stage);
  if (found == running_.end() || take_arrived(found->second)) return true;
  if (op.kind == action_kind::reshard) return run_.parameters(op.stage).keeps_weights();
  return found->second.is_deferred ? op.kind == action_kind::forward || is_of_storage(op.kind)
                                   : !reads_parameters(op.kind) && op.kind != action_kind::apply;
}

void weight_gathers::progress() {
  for (auto next = running_.begin(); next != running_.end();) take_arrived((next++)->second);
}

/// Whether all has been taken, which ends it.
bool weight_gathers::take_arrived(gather& one) {
  auto stage = one.op->stage;
  auto& parameters = run_.parameters(stage);
  auto take = [&](const std::pair<int, int>& wanted) {
    auto [bucket, owner] = wanted;
    auto found = run_.inputs().take(tag_of(one, bucket, owner, run_.replica()));
    if (found) parameters.take_weights(bucket, *found);
    return found.has_value();
  };
  std::erase_if(one.missing, take);
  if (!one.missing.empty()) return false;
  if (one.is_deferred) parameters.end_gather();
  running_.erase(stage);
  gathered_.insert(stage);
  return true;
}

/// Called by the program of `stage` within its forward.
void weight_gathers::progress_within(int stage, bool waits) {
  auto found = running_.find(stage);
  if (found == running_.end()) return;
  if (waits)
    run_.host().wait_within(run_.next(), run_.next_position());
  else
    run_.host().take_arrivals();
  take_arrived(found->second);
}

transport::tensor_tag weight_gathers::tag_of(const gather& one, int bucket, int owner, int to) const {
  const auto& mesh = run_.running().mesh;
  auto lane = mesh.lane_at(to, mesh.slice_of(run_.lane()));
  auto tag = run_.tag_to(lane, transport::tensor_role::shard_weights, one.op->stage, one.number,
                         static_cast<std::size_t>(bucket) * static_cast<std::size_t>(mesh.num_replicas) +
                             static_cast<std::size_t>(owner));
  tag.step = one.step;
  tag.axis = one.op->axis;
  return tag;
}

}  // namespace troupe::execution
