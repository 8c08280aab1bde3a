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
      break;  // no host is told
  }
  return trace::trace_kind::forward;
}

}  // namespace

void step_account::begin_generation(device place) {
  queued_.clear();
  clock_ = stream_clock(place);
  is_in_action_ = is_in_deferred_ = false;
  waits_.clear();
}

void step_account::begin_step(std::uint64_t generation, std::uint64_t step) {
  generation_ = generation;
  step_ = step;
  first_begin_ns_ = last_end_ns_ = busy_ns_ = wait_begin_ns_ = waited_in_action_ns_ = deferred_ns_ = 0;
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
  take_done();
  while (queued_.size() >= most_queued) {
    clock_.wait_for(queued_.front().ran.end);
    take_done();
  }
  action_begin_ = clock_.now();
  action_begin_ns_ = action_begin_.made_ns();
  waited_in_action_ns_ = 0;
  waits_.clear();
  is_in_action_ = true;
  if (wait_begin_ns_ > 0)
    ring_->record({std::exchange(wait_begin_ns_, 0), action_begin_ns_, generation_, step_, op.stage,
                   op.microbatch, trace::trace_kind::wait, static_cast<std::uint8_t>(waits_for_)});
  ring_->record({action_begin_ns_, action_begin_ns_, generation_, step_, op.stage, op.microbatch,
                 trace::trace_kind::action_begun, static_cast<std::uint8_t>(kind_of(op.kind))});
}

/// A deferred update waits for a copy of the state only.
void step_account::begin_wait_in_action(const action& op, trace::wait_reason reason) {
  if (reason == trace::wait_reason::tensor) is_in_deferred_ = false;
  inner_wait_ = clock_.now();
  inner_waits_for_ = reason;
  auto begin_ns = inner_wait_.made_ns();
  ring_->record({begin_ns, begin_ns, generation_, step_, op.stage, op.microbatch,
                 trace::trace_kind::wait_begun, static_cast<std::uint8_t>(reason)});
}

void step_account::end_wait_in_action(const action& op) {
  interval waited{inner_wait_, clock_.now()};
  ring_->record({waited.begin.made_ns(), waited.end.made_ns(), generation_, step_, op.stage, op.microbatch,
                 trace::trace_kind::wait, static_cast<std::uint8_t>(inner_waits_for_)});
  if (is_in_deferred_) return;  // all of it is left out
  waited_in_action_ns_ += waited.end.made_ns() - waited.begin.made_ns();
  waits_.push_back(std::move(waited));
}

void step_account::end_action(const action& op, bool saves) {
  auto use = op.kind == action_kind::apply ? span_use::outside : span_use::work;
  if (use == span_use::work)
    is_busy_ =
        is_busy_ || trace::now_ns() - action_begin_ns_ - waited_in_action_ns_ - deferred_ns_ > long_action;
  if (op.kind == action_kind::forward && saves) saved(op.stage);
  if (op.kind == action_kind::backward || op.kind == action_kind::weight_gradient) released(op.stage);
  is_in_action_ = false;
  waited_in_action_ns_ = 0;
  add(span{op, use, step_, {action_begin_, clock_.now()}, std::exchange(waits_, {})});
}

void step_account::add_non_finite(const std::string& what) {
  if (non_finite_.empty()) non_finite_ = what;
}

void step_account::end_step() {
  auto last = std::ranges::find(queued_.rbegin(), queued_.rend(), span_use::work, &span::use);
  if (last != queued_.rend()) clock_.wait_for(last->ran.end);
  take_done();
  was_busy_ = std::exchange(is_busy_, false);
}

void step_account::describe(messages::step_done& report, bool with_actions) const {
  report.device = device_;
  report.first_begin_ns = first_begin_ns_;
  report.last_end_ns = last_end_ns_;
  report.busy_ns = busy_ns_;
  report.peak_activations = peak_;
  report.non_finite = non_finite_;
  if (with_actions) report.actions = actions_;
}

void step_account::add(span queued) {
  queued_.push_back(std::move(queued));
  take_done();
}

/// On the CPU an action is done when it has ended.
void step_account::take_done() {
  while (!queued_.empty() && clock_.is_past(queued_.front().ran.end)) {
    take(queued_.front());
    queued_.pop_front();
  }
}

void step_account::take(const span& done) {
  const auto& op = done.op;
  auto begin_ns = clock_.ns_of(done.ran.begin), end_ns = clock_.ns_of(done.ran.end);
  if (!done.is_within) {  // clocks that have been compared anew differ from before
    begin_ns = std::max(begin_ns, known_until_ns_);
    known_until_ns_ = end_ns = std::max(begin_ns, end_ns);
  }
  if (done.use == span_use::work) {
    auto waited_ns = std::exchange(deferred_ns_, 0);
    for (const auto& wait : done.waits) waited_ns += length_of(wait);
    return add_work(op, begin_ns, end_ns, waited_ns);
  }
  if (done.is_within) deferred_ns_ += end_ns - begin_ns;
  auto number = op.kind == action_kind::apply ? -1 : op.microbatch;
  ring_->record({begin_ns, end_ns, generation_, done.step, op.stage, number, kind_of(op.kind)});
}

void step_account::add_work(const action& op, std::int64_t begin_ns, std::int64_t end_ns,
                            std::int64_t waited_ns) {
  if (first_begin_ns_ == 0) first_begin_ns_ = begin_ns;
  last_end_ns_ = end_ns;
  busy_ns_ += end_ns - begin_ns - waited_ns;
  actions_.push_back({device_, static_cast<std::uint32_t>(op.stage),
                      static_cast<std::uint32_t>(op.microbatch), op.kind, begin_ns, end_ns});
  ring_->record({begin_ns, end_ns, generation_, step_, op.stage, op.microbatch, kind_of(op.kind)});
}

void step_account::record(trace::trace_kind kind, std::int64_t begin_ns, int stage) {
  ring_->record({begin_ns, trace::now_ns(), generation_, step_, stage, -1, kind});
}

void step_account::begin_deferred() {
  deferred_begin_ = clock_.now();
  is_in_deferred_ = true;
}

void step_account::end_deferred(const action& op, std::uint64_t step) {
  is_in_deferred_ = false;
  add(span{op, span_use::deferred, step, {deferred_begin_, clock_.now()}, {}, is_in_action_});
}

void step_account::saved(int stage) { peak_ = std::max(peak_, ++saved_[stage]); }

}  // namespace troupe::actors::devices
