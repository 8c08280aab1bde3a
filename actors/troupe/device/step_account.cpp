#include "troupe/device/step_account.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "troupe/messages/scheduler.hpp"

namespace troupe::actors::devices {
namespace {

/// An action longer than this gives up polling ownership; waking the transport's thread takes some
/// microseconds.
constexpr auto long_action = std::chrono::nanoseconds(std::chrono::microseconds(50)).count();

trace::trace_kind kind_of(action_kind kind) {
  switch (kind) {
    case action_kind::forward:
      return trace::trace_kind::forward;
    case action_kind::backward:
      return trace::trace_kind::backward;
    case action_kind::input_gradient:
      return trace::trace_kind::input_gradient;
    case action_kind::weight_gradient:
      return trace::trace_kind::weight_gradient;
    case action_kind::reduce_gradient:
      return trace::trace_kind::reduce_gradient;
    case action_kind::apply:
      return trace::trace_kind::apply;
    case action_kind::all_reduce:
      return trace::trace_kind::all_reduce;
    case action_kind::unshard:
    case action_kind::reshard:
      break;  // they do nothing, and no host is told
  }
  return trace::trace_kind::forward;
}

}  // namespace

void step_account::begin_step(std::uint64_t generation, std::uint64_t step) {
  generation_ = generation;
  step_ = step;
  first_begin_ns_ = last_end_ns_ = busy_ns_ = wait_begin_ns_ = waited_in_action_ns_ = 0;
  peak_ = 0;
  saved_.clear();
  actions_.clear();
  non_finite_.clear();
}

void step_account::begin_wait(trace::wait_reason reason, const action& op) {
  if (wait_begin_ns_ > 0) return;
  wait_begin_ns_ = trace::now_ns();
  waits_for_ = reason;
  ring_->record({wait_begin_ns_, wait_begin_ns_, generation_, step_, op.stage, op.microbatch,
                 trace::trace_kind::wait_begun, static_cast<std::uint8_t>(reason)});
}

void step_account::begin_action(const action& op) {
  action_begin_ns_ = trace::now_ns();
  waited_in_action_ns_ = 0;
  if (wait_begin_ns_ > 0)
    ring_->record({std::exchange(wait_begin_ns_, 0), action_begin_ns_, generation_, step_, op.stage,
                   op.microbatch, trace::trace_kind::wait, static_cast<std::uint8_t>(waits_for_)});
  ring_->record({action_begin_ns_, action_begin_ns_, generation_, step_, op.stage, op.microbatch,
                 trace::trace_kind::action_begun, static_cast<std::uint8_t>(kind_of(op.kind))});
}

void step_account::begin_wait_in_action(const action& op) {
  wait_begin_ns_ = trace::now_ns();
  ring_->record({wait_begin_ns_, wait_begin_ns_, generation_, step_, op.stage, op.microbatch,
                 trace::trace_kind::wait_begun, static_cast<std::uint8_t>(trace::wait_reason::tensor)});
}

void step_account::end_wait_in_action(const action& op) {
  auto begin_ns = std::exchange(wait_begin_ns_, 0), end_ns = trace::now_ns();
  waited_in_action_ns_ += end_ns - begin_ns;
  ring_->record({begin_ns, end_ns, generation_, step_, op.stage, op.microbatch, trace::trace_kind::wait,
                 static_cast<std::uint8_t>(trace::wait_reason::tensor)});
}

void step_account::end_action(const action& op, bool saves) {
  if (op.kind == action_kind::apply) return record(trace::trace_kind::apply, action_begin_ns_, op.stage);
  auto end_ns = trace::now_ns();
  is_busy_ = is_busy_ || end_ns - action_begin_ns_ - waited_in_action_ns_ > long_action;
  if (op.kind == action_kind::forward && saves) saved(op.stage);
  if (op.kind == action_kind::backward || op.kind == action_kind::weight_gradient) released(op.stage);
  add(op, action_begin_ns_, end_ns);
}

void step_account::add_non_finite(const std::string& what) {
  if (non_finite_.empty()) non_finite_ = what;
}

void step_account::end_step() { was_busy_ = std::exchange(is_busy_, false); }

void step_account::describe(messages::step_done& report, bool with_actions) const {
  report.device = device_;
  report.first_begin_ns = first_begin_ns_;
  report.last_end_ns = last_end_ns_;
  report.busy_ns = busy_ns_;
  report.peak_activations = peak_;
  report.non_finite = non_finite_;
  if (with_actions) report.actions = actions_;
}

void step_account::add(const action& op, std::int64_t begin_ns, std::int64_t end_ns) {
  if (first_begin_ns_ == 0) first_begin_ns_ = begin_ns;
  last_end_ns_ = end_ns;
  busy_ns_ += end_ns - begin_ns - std::exchange(waited_in_action_ns_, 0);
  actions_.push_back({device_, static_cast<std::uint32_t>(op.stage),
                      static_cast<std::uint32_t>(op.microbatch), op.kind, begin_ns, end_ns});
  ring_->record({begin_ns, end_ns, generation_, step_, op.stage, op.microbatch, kind_of(op.kind)});
}

void step_account::record(trace::trace_kind kind, std::int64_t begin_ns, int stage) {
  ring_->record({begin_ns, trace::now_ns(), generation_, step_, stage, -1, kind});
}

void step_account::record_deferred(const action& op, std::uint64_t step, std::int64_t begin_ns) {
  auto end_ns = trace::now_ns();
  waited_in_action_ns_ += end_ns - begin_ns;
  auto number = op.kind == action_kind::apply ? -1 : op.microbatch;
  ring_->record({begin_ns, end_ns, generation_, step, op.stage, number, kind_of(op.kind)});
}

void step_account::saved(int stage) { peak_ = std::max(peak_, ++saved_[stage]); }

}  // namespace troupe::actors::devices
