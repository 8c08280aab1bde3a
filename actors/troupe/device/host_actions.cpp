// device_state: what the plan's interpreter needs from the device.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "troupe/device/device_actor.hpp"
#include "troupe/fault/action_faults.hpp"

namespace troupe::actors::devices {

void device_state::send(const transport::tensor_tag& tag, tensor value) {
  const auto& job = *command_.job;
  auto host = host_of(job.placed, job.hosts,
                      {.stage = static_cast<int>(tag.stage),
                       .replica = static_cast<int>(tag.replica),
                       .slice = static_cast<int>(tag.slice)});
  if (value.device().type == device::kind::cpu) return options_.out->send_tensor(host, tag, std::move(value));
  from_gpu().add(host, tag, std::move(value));
}

outgoing_copies& device_state::from_gpu() {
  if (!from_gpu_)
    from_gpu_.emplace([out = options_.out](int rank, const transport::tensor_tag& tag,
                                           tensor on_cpu) { out->send_tensor(rank, tag, std::move(on_cpu)); },
                      [device = self_->address(), failed = has_failed_to_send_](
                          const transport::tensor_tag& tag, std::exception_ptr cause) {
                        if (auto living = caf::actor_cast<caf::actor>(device))
                          caf::anon_send(living, messages::sending_failed{tag.generation, std::move(cause)});
                        *failed = true;
                      });
  return *from_gpu_;
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
  account_.begin_wait_in_action(op);
  waiter_.receive_in_action();
  account_.end_wait_in_action(op);
  if (account_.is_busy()) waiter_.stop();
  set_status(schedule::device_activity::computing);
}

/// A copy of the state between the two steps needs the complete update.
bool device_state::may_defer_updates() {
  return options_.spin.count() > 0 && plan_position{step_ + 1, 0} < end_ &&
         std::ranges::find(copies_, step_ + 1, &messages::due_copy::step) == copies_.end();
}

/// Gives up polling ownership if actions take long, so that the transport's thread receives meanwhile.
void device_state::on_begin(const action& op) {
  set_status(op.kind == action_kind::apply ? schedule::device_activity::applying
                                           : schedule::device_activity::computing);
  if (account_.is_busy()) waiter_.stop();
  account_.begin_action(op);
  options_.faults->at(fault::fault_point_of(op.kind), step_);
}

void device_state::on_end(const action& op) { account_.end_action(op, call_->kind == job::call_kind::train); }

void device_state::on_begin_deferred(const action& op, std::uint64_t step) {
  deferred_begin_ns_ = trace::now_ns();
  options_.faults->at(fault::fault_point_of(op.kind), step);
}

void device_state::on_end_deferred(const action& op, std::uint64_t step) {
  account_.record_deferred(op, step, deferred_begin_ns_);
}

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
