// plan_interpreter: updates of stages that end while the forwards of the next step run.
#include <iterator>

#include "troupe/execution/plan_interpreter.hpp"

namespace troupe {

/// Whether the G that cannot end yet, and the A after it, count as done.
bool plan_interpreter::defer(const action& all_reduce) {
  auto stage = all_reduce.stage;
  if (options_.running.flush_every > 1 || !apply_after(all_reduce) || !host_.may_defer_updates())
    return false;
  if (!program(stage).defer_update([this, stage](bool waits) { progress_within(stage, waits); }))
    return false;
  deferred_.insert(all_reduces_.extract(stage));
  host_.on_begin(all_reduce);
  host_.on_end(all_reduce);
  return true;
}

/// The A that is the next action of the stage after its G; null: another one is.
const action* plan_interpreter::apply_after(const action& all_reduce) const {
  const auto* end = actions().data() + actions().size();
  for (const auto* next = &all_reduce + 1; next != end; ++next)
    if (next->stage == all_reduce.stage) return next->kind == action_kind::apply ? next : nullptr;
  return nullptr;
}

void plan_interpreter::progress_deferred_updates() {
  for (auto next = deferred_.begin(); next != deferred_.end() && !is_halted_;)
    next = end_deferred(next->second) ? deferred_.erase(next) : std::next(next);
}

/// False: pieces are still to come. Where all have come before the plan has passed A, that runs in its place.
bool plan_interpreter::end_deferred(running_all_reduce& update) {
  const auto& all_reduce = *update.op;
  if (!update.exchange.can_go_on(inputs_)) return false;
  host_.on_begin_deferred(all_reduce, update.step);
  go_on(update);
  if (!update.exchange.is_done()) return false;
  host_.on_end_deferred(all_reduce, update.step);
  const auto& op = *apply_after(all_reduce);
  bool is_ahead = update.step == step_ && &op >= actions().data() + position_;
  if (is_ahead || halts_before(op)) return true;
  host_.on_begin_deferred(op, update.step);
  program(op.stage).apply(optimizer_step(update.step, op.microbatch));
  host_.on_end_deferred(op, update.step);
  return true;
}

/// Called by the program of `stage` within its forward.
void plan_interpreter::progress_within(int stage, bool waits) {
  if (waits)
    host_.wait_within(actions()[position_], position_of(deferred_.at(stage)));
  else
    host_.take_arrivals();
  progress_deferred_updates();
  if (is_halted_) throw action_interrupted();
}

/// The update that must end before `op`: that of its stage, unless `op` is a forward; of a G also any of the
/// step before, so that only one step's are deferred at a time.
auto plan_interpreter::update_before(const action& op) const -> const running_all_reduce* {
  if (deferred_.empty() || op.kind == action_kind::forward || op.kind == action_kind::apply) return nullptr;
  auto own = deferred_.find(op.stage);
  if (own != deferred_.end()) return &own->second;
  const auto& any = deferred_.begin()->second;
  return op.kind == action_kind::all_reduce && any.step != step_ ? &any : nullptr;
}

plan_position plan_interpreter::waits_at() const {
  const auto* update = is_at_end() ? nullptr : update_before(actions()[position_]);
  return update ? position_of(*update) : plan_position{step_, static_cast<std::uint32_t>(position_)};
}

plan_position plan_interpreter::position_of(const running_all_reduce& of) const {
  return {of.step, static_cast<std::uint32_t>(of.op - actions().data())};
}

}  // namespace troupe
