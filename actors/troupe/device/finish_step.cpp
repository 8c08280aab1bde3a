// device_state: the end of a step (state copies, step_done to the scheduler).
#include <algorithm>
#include <utility>

#include "troupe/device/device_actor.hpp"
#include "troupe/job/metrics_tensor.hpp"
#include "troupe/messages/stage.hpp"

namespace troupe::actors::devices {

void device_state::finish_step() {
  set_status(schedule::device_activity::applying);
  account_.end_step();
  if (account_.is_busy()) waiter_.stop();
  auto done = describe_step();
  auto metrics = std::exchange(metrics_, {});
  if (interpreter_->has_deferred_updates() && !interpreter_->is_halted()) {
    deferred_step_ = std::move(done);
    return begin_next_step();
  }
  // A state that is not finite is not copied, so that it cannot be committed.
  if (interpreter_->is_halted()) return self_->send(command_.scheduler, done);
  auto applied = step_ + 1;
  auto due = std::ranges::find(copies_, applied, &messages::due_copy::step);
  if (call_->kind == job::call_kind::train && due != copies_.end()) {
    auto begin = trace::now_ns();
    copy_states(*due, metrics);
    done.copy_ns = trace::now_ns() - begin;
  }
  std::erase_if(copies_, [&](const messages::due_copy& copy) { return copy.step <= applied; });
  self_->send(command_.scheduler, done);
  replica_metrics_.clear();
  begin_next_step();
}

void device_state::finish_deferred_step() {
  replica_metrics_.clear();
  self_->send(command_.scheduler, *std::exchange(deferred_step_, {}));
}

void device_state::begin_next_step() {
  batches_.forget(step_);
  interpreter_->begin_step(++step_);
  step_begun_ = false;
}

messages::step_done device_state::describe_step() {
  messages::step_done done;
  done.generation = generation_;
  done.call = call_->index;
  done.step = step_;
  bool trains = call_->kind == job::call_kind::train;
  bool is_sampled = trains && sampling_.takes(step_, account_.num_actions(), trace::now_ns());
  account_.describe(done, is_sampled || (trains && step_ + 1 == call_->target_step));
  take_metrics();
  done.metrics = told_metrics();
  return done;
}

void device_state::copy_states(const messages::due_copy& due, const program::step_metrics& metrics) {
  account_scope charged(options_.account, memory_use::snapshots);
  for (auto& attached : command_.stages) {
    auto begin = trace::now_ns();
    auto state = attached.program->state();
    auto contents = attached.program->contents();
    if (attached.stage == command_.job->num_stages() - 1) {
      state.push_back(command_.job->shares_metrics ? job::replica_metrics_tensor(replica_metrics_)
                                                   : job::metrics_tensor(metrics));
      contents.push_back(whole_contents(state.back()));
    }
    auto packed = pack_state(state, contents, pool_);
    options_.faults->at(fault::fault_point::copy_state, step_);
    self_->send(attached.owner,
                messages::state_copied{generation_, due.step, std::move(packed), due.to_disk != 0});
    account_.record(trace::trace_kind::copy_state, begin, attached.stage);
  }
}

}  // namespace troupe::actors::devices
