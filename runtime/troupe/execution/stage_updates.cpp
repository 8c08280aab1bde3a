#include "troupe/execution/stage_updates.hpp"

#include <iterator>
#include <string>

namespace troupe::execution {

running_all_reduce& stage_updates::all_reduce_of(const action& op) {
  auto found = running_.find(op.stage);
  if (found == running_.end()) found = running_.try_emplace(op.stage, run_, op).first;
  return found->second;
}

program::stage_compute::bucket_callback stage_updates::giving_to(const action& all_reduce) {
  return [this, &all_reduce](int bucket) {
    all_reduce_of(all_reduce).give_bucket(bucket);
    run_.host().take_arrivals();
    for (auto& [stage, running] : running_) running.add_up();
  };
}

/// Not those of `next`: a G adds up within it, where its time counts.
void stage_updates::add_up_before(const action& next) {
  for (auto& [stage, running] : running_)
    if (running.op() != next) running.add_up();
}

bool stage_updates::run_all_reduce(const action& op) {
  auto& running = all_reduce_of(op);
  running.finish_copies();
  bool has_nothing = running.is_done();
  if (has_nothing || running.can_go_on()) {
    run_.host().on_begin(op);
    running.go_on();
    if (running.is_done()) run_.host().on_end(op);
  }
  if (!running.is_done()) return defer(op);
  running_.erase(op.stage);
  return true;
}

bool stage_updates::run_apply(const action& op) {
  if (deferred_.contains(op.stage)) return true;
  if (halts_before(op)) return false;
  run_.host().on_begin(op);
  run_.host().before_update(op);
  run_.parameters(op.stage).apply(run_.optimizer_step(run_.step(), op.microbatch));
  run_.host().on_end(op);
  return true;
}

/// Whether the A is not run since something is infinite or NaN.
bool stage_updates::halts_before(const action& op) {
  auto what = run_.host().non_finite_elsewhere(op);
  if (what.empty()) what = run_.parameters(op.stage).non_finite();
  is_halted_ = !what.empty() && !run_.host().on_non_finite(op, what);
  return is_halted_;
}

/// Whether the G that cannot end yet, and the A after it, count as done.
bool stage_updates::defer(const action& all_reduce) {
  auto stage = all_reduce.stage;
  if (run_.running().flush_every > 1 || all_reduce.axis != layout::mesh_axis::dp ||
      !apply_after(all_reduce) || !run_.host().may_defer_updates())
    return false;
  run_.host().before_update(all_reduce);
  if (!run_.parameters(stage).defer_update([this, stage](bool waits) { progress_within(stage, waits); }))
    return false;
  deferred_.insert(running_.extract(stage));
  run_.host().on_begin(all_reduce);
  run_.host().on_end(all_reduce);
  return true;
}

/// The A that is the next action of the stage but U and S after its G; null: another one is.
const action* stage_updates::apply_after(const action& all_reduce) const {
  const auto* end = run_.actions().data() + run_.actions().size();
  for (const auto* next = &all_reduce + 1; next != end; ++next)
    if (next->stage == all_reduce.stage && !is_of_storage(next->kind))
      return next->kind == action_kind::apply ? next : nullptr;
  return nullptr;
}

void stage_updates::progress_deferred() {
  for (auto next = deferred_.begin(); next != deferred_.end() && !is_halted_;)
    next = end_deferred(next->second) ? deferred_.erase(next) : std::next(next);
}

/// False: buckets are still to come. Where all have come before the plan has passed A, that runs in its
/// place.
bool stage_updates::end_deferred(running_all_reduce& update) {
  const auto& all_reduce = update.op();
  if (!update.can_go_on()) return false;
  run_.host().on_begin_deferred(all_reduce, update.step());
  update.go_on();
  if (!update.is_done()) return false;
  run_.host().on_end_deferred(all_reduce, update.step());
  const auto& op = *apply_after(all_reduce);
  bool is_ahead = update.step() == run_.step() && run_.index_of(op) >= run_.position();
  if (is_ahead || halts_before(op)) return true;
  run_.host().on_begin_deferred(op, update.step());
  run_.host().before_update(op);
  run_.parameters(op.stage).apply(run_.optimizer_step(update.step(), op.microbatch));
  run_.host().on_end_deferred(op, update.step());
  return true;
}

/// Called by the program of `stage` within its forward.
void stage_updates::progress_within(int stage, bool waits) {
  if (waits)
    run_.host().wait_within(run_.next(), deferred_.at(stage).position());
  else
    run_.host().take_arrivals();
  progress_deferred();
  if (is_halted_) throw program::action_interrupted();
}

const running_all_reduce* stage_updates::deferred_before(const action& op) const {
  bool may_overtake =
      op.kind == action_kind::forward || op.kind == action_kind::apply || is_of_storage(op.kind);
  if (deferred_.empty() || may_overtake) return nullptr;
  auto own = deferred_.find(op.stage);
  if (own != deferred_.end()) return &own->second;
  const auto& any = deferred_.begin()->second;
  return op.kind == action_kind::all_reduce && any.step() != run_.step() ? &any : nullptr;
}

}  // namespace troupe::execution
