// device_state: what the plan's interpreter needs from the device.
#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "troupe/device/device_actor.hpp"
#include "troupe/fault/action_faults.hpp"
#include "troupe/tensor/async/async_device_copy.hpp"
#include "troupe/tensor/async/async_host_copy.hpp"

namespace troupe::actors::devices {

void device_state::send(const transport::tensor_tag& tag, tensor value) {
  const auto& job = *command_.job;
  auto host = host_of(job.placed, job.hosts,
                      {.stage = static_cast<int>(tag.stage),
                       .replica = static_cast<int>(tag.replica),
                       .slice = static_cast<int>(tag.slice)});
  if (value.device().type == device::kind::cpu) return options_.out->send_tensor(host, tag, std::move(value));
  if (auto place = host == options_.rank ? place_of_receiver(tag) : device();
      place.type == device::kind::cuda)
    return options_.out->send_tensor(
        host, tag, place == value.device() ? std::move(value) : computed_by_now(std::move(value)));
  auto copy = std::make_shared<async_host_copy>(std::move(value));
  started(sends_, "sends").add(generation_, [out = options_.out, host, tag, copy = std::move(copy)] {
    out->send_tensor(host, tag, copy->take());
  });
}

/// Where the receiver, of this process, gets the tensor: on its GPU, or in the CPU's memory. On a GPU it is
/// handed over where it is. What the receiver queues comes after what is queued for the tensor by now: on one
/// GPU, since it has one stream, and on another one, since its copy waits for that.
device device_state::place_of_receiver(const transport::tensor_tag& tag) const {
  if (tag.role != transport::tensor_role::activation && tag.role != transport::tensor_role::gradient)
    return {};
  const auto& job = *command_.job;
  return job.places.of(job.placed.device_of({.stage = static_cast<int>(tag.stage),
                                             .replica = static_cast<int>(tag.replica),
                                             .slice = static_cast<int>(tag.slice)}));
}

copy_thread& device_state::started(std::optional<copy_thread>& copies, const char* name,
                                   std::function<void()> on_idle) {
  if (copies) return *copies;
  auto on_failure = [device = self_->address(), failed = has_failed_to_copy_](std::uint64_t generation,
                                                                              std::exception_ptr cause) {
    if (auto living = caf::actor_cast<caf::actor>(device))
      caf::anon_send(living, messages::copy_failed{generation, std::move(cause)});
    *failed = true;
  };
  return copies.emplace(name, std::move(on_failure), std::move(on_idle));
}

/// Copies of the state may still be made from the memory that changes now. A fence ends the wait.
void device_state::before_update(const action& op) {
  constexpr auto fence_check_interval = std::chrono::milliseconds(1);
  if (!state_copies_ || !state_copies_->is_busy()) return;
  auto begin_ns = trace::now_ns();
  waiter_.stop();
  auto before = last_status_.activity;
  set_status(schedule::device_activity::copying_state);
  account_.begin_wait_in_action(op, trace::wait_reason::state_copy);
  while (!waiter_.is_fenced() && !state_copies_->wait_for(fence_check_interval)) {
  }
  account_.end_wait_in_action(op);
  set_status(before);
  copy_ns_ += trace::now_ns() - begin_ns;
  if (waiter_.is_fenced() || *has_failed_to_copy_) throw program::action_interrupted();
}

/// Groups are made while a generation begins, so that this waits once, if at all.
const execution::replica_group* device_state::group_of(int stage) {
  constexpr auto fence_check_interval = std::chrono::milliseconds(1);
  if (!has_group(stage)) return nullptr;
  auto& groups = *command_.job->groups;
  const auto* found = groups.wait_for(group_key(stage), std::chrono::milliseconds(0));
  if (found) return found;
  auto before = last_status_.activity;
  set_status(schedule::device_activity::waiting_for_tensor);
  while (!(found = groups.wait_for(group_key(stage), fence_check_interval)))
    if (waiter_.is_fenced()) throw program::action_interrupted();
  set_status(before);
  return found;
}

void device_state::on_group_failure(const std::exception& cause) {
  if (!waiter_.is_fenced()) command_.job->groups->report(cause);
}

/// Afterwards the action goes on, which may take long.
void device_state::wait_within(const action& op, const plan_position& awaited) {
  if (options_.spin.count() == 0)
    throw std::logic_error("[device] expected a thread of its own to wait on within " + to_string(op) +
                           ", got one that other devices share");
  set_status(schedule::device_activity::waiting_for_tensor, awaited);
  account_.begin_wait_in_action(op, trace::wait_reason::tensor);
  waiter_.receive_in_action();
  account_.end_wait_in_action(op);
  if (account_.is_busy()) waiter_.stop();
  set_status(schedule::device_activity::computing);
}

/// A copy of the state between the two steps needs the complete update.
bool device_state::may_defer_updates() {
  return may_wait_within() && plan_position{step_ + 1, 0} < end_ &&
         std::ranges::find(copies_, step_ + 1, &messages::due_copy::step) == copies_.end();
}

/// Gives up polling ownership if actions take long, so that the transport's thread receives meanwhile.
void device_state::on_begin(const action& op) {
  set_status(op.kind == action_kind::apply ? schedule::device_activity::applying
                                           : schedule::device_activity::computing);
  if (account_.is_busy() || account_.has_queued()) waiter_.stop();
  account_.begin_action(op);
  options_.faults->at(fault::fault_point_of(op.kind), step_);
}

void device_state::on_end(const action& op) { account_.end_action(op, call_->kind == job::call_kind::train); }

void device_state::on_begin_deferred(const action& op, std::uint64_t step) {
  account_.begin_deferred();
  options_.faults->at(fault::fault_point_of(op.kind), step);
}

void device_state::on_end_deferred(const action& op, std::uint64_t step) { account_.end_deferred(op, step); }

/// All forwards of the step are done: taken once, since a sum of sums would have other bits.
program::step_metrics device_state::metrics() {
  take_metrics();
  return metrics_;
}

void device_state::on_replica_metrics(const std::vector<program::step_metrics>& of_replicas) {
  replica_metrics_ = of_replicas;
}

/// A step that one replica halts at is halted at by all, so that they keep equal weights.
std::string device_state::non_finite_elsewhere(const action& op) {
  const auto& job = *command_.job;
  if (job.on_non_finite == non_finite_policy::go_on || op.stage + 1 != job.num_stages()) return {};
  bool all_finite = std::ranges::all_of(
      replica_metrics_, [](const program::step_metrics& each) { return std::isfinite(each.loss_sum); });
  return all_finite ? "" : "the loss";
}

bool device_state::on_non_finite(const action& op, const std::string& what) {
  auto text = "stage " + std::to_string(op.stage) + ": " + what;
  if (!deferred_step_)
    account_.add_non_finite(text);
  else if (deferred_step_->non_finite.empty())
    deferred_step_->non_finite = text;
  return command_.job->on_non_finite != non_finite_policy::stop;
}

}  // namespace troupe::actors::devices
