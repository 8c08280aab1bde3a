// device_state: the end of a step (state copies, step_done to the scheduler).
#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "troupe/device/device_actor.hpp"
#include "troupe/job/metrics_tensor.hpp"
#include "troupe/messages/stage.hpp"
#include "troupe/tensor/async/async_host_copy.hpp"
#include "troupe/trace/recording.hpp"

namespace troupe::actors::devices {

void device_state::finish_step() {
  set_status(schedule::device_activity::applying);
  if (account_.has_queued()) waiter_.stop();
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
    set_status(schedule::device_activity::copying_state);
    copy_states(*due, metrics);
    // Beside the next step the copy costs that one, which may wait for it.
    (is_on_gpu() ? copy_ns_ : done.copy_ns) += trace::now_ns() - begin;
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
  done.copy_ns = std::exchange(copy_ns_, 0);
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
    if (is_on_gpu()) {
      copy_beside(attached, due, state, contents);
      continue;
    }
    auto packed = pack_state(state, contents, pool_);
    options_.faults->at(fault::fault_point::copy_state, step_);
    self_->send(attached.owner,
                messages::state_copied{generation_, due.step, std::move(packed), due.to_disk != 0});
    account_.record(trace::trace_kind::copy_state, begin, attached.stage);
  }
}

/// Copies the state from the GPU while the next step runs. What that may change before its update (buffers,
/// what compression holds back) is copied on the GPU first.
void device_state::copy_beside(const messages::attached_stage& from, const messages::due_copy& due,
                               const std::vector<named_tensor>& state,
                               const std::vector<tensor_contents>& contents) {
  std::set<std::string> changed_by_updates;
  for (const auto& each : from.program->parameters()) changed_by_updates.insert(each.name);
  for (const auto& each : from.program->optimizer_state()) changed_by_updates.insert(each.name);
  auto copies = std::make_shared<std::vector<async_host_copy>>();
  for (const auto& [name, value] : state)
    copies->emplace_back(changed_by_updates.contains(name) ? value : value.clone(), host_copy_use::state);
  auto no_longer_busy = [device = self_->address()] {
    if (auto living = caf::actor_cast<caf::actor>(device)) caf::anon_send(living, messages::run_on{});
  };
  started(state_copies_, "state copies", no_longer_busy)
      .add(generation_, [=, this, generation = generation_, step = step_] {
        account_scope charged(options_.account, memory_use::snapshots);
        auto begin = trace::now_ns();
        auto copy = [&](std::size_t index, std::span<std::byte> to) {
          if (options_.fenced->load(std::memory_order_acquire) > generation)
            throw program::action_interrupted();
          (*copies)[index].take_into(to);
        };
        tensor packed;
        try {
          packed = pack_state(state, contents, pool_, copy);
        } catch (const program::action_interrupted&) {
          return;  // nobody waits for it any more
        }
        options_.faults->at(fault::fault_point::copy_state, step);
        caf::anon_send(from.owner,
                       messages::state_copied{generation, due.step, std::move(packed), due.to_disk != 0});
        trace::emit(
            {begin, trace::now_ns(), generation, step, from.stage, -1, trace::trace_kind::copy_state});
      });
}

}  // namespace troupe::actors::devices
