#include "troupe/supervisor/generation_runner.hpp"

#include <algorithm>
#include <caf/duration.hpp>
#include <caf/sec.hpp>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/config/duration_text.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/messages/device.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe::actors::supervisor {

using phase = process_generation::phase;

namespace {

/// Of a device that computes, also with a shorter limit of progress: the machine may be busy.
constexpr std::chrono::milliseconds least_time_to_stop = std::chrono::seconds(30);
/// The agent hears so often that devices compute.
constexpr std::chrono::milliseconds check_stopping_every = std::chrono::seconds(1);
constexpr std::uint32_t checks_before_warning = 5;

}  // namespace

generation_runner::generation_runner(caf::event_based_actor* self, const supervisor_options& options,
                                     job_children& children, process_connections& connections,
                                     supervision_tree& tree, std::shared_ptr<job::call_log> completed)
    : self_(self),
      options_(options),
      children_(children),
      connections_(connections),
      tree_(tree),
      completed_(std::move(completed)) {}

void generation_runner::quiesce(const messages::fence_raised& fence) {
  auto generation = current_.number = fence.generation;
  current_.now = phase::quiescing;
  connections_.end(fence.losses, "generation " + std::to_string(generation) + " has begun");
  connections_.end_scheduler();
  stopping_.clear();
  for (const auto& [number, device] : children_.devices()) stopping_.insert(number);
  if (stopping_.empty()) return acknowledge();
  for (const auto& [number, device] : children_.devices()) stop_device(number, device);
  check_stopping_later(1);
}

/// An action may take long: its device has as much time to stop as counts as no progress elsewhere.
void generation_runner::stop_device(int number, const caf::actor& device) {
  auto generation = current_.number;
  caf::duration limit(caf::infinite);
  if (options_.progress_timeout.count() > 0)
    limit = caf::duration(std::max(options_.progress_timeout, least_time_to_stop));
  self_->request(device, limit, troupe::actors::messages::quiesce{generation})
      .then(
          [this, generation, number](const messages::stopped& answer) {
            note_stopped(generation, number, answer.interrupted_step);
          },
          [this, generation, number](const caf::error& problem) {
            if (problem != caf::sec::request_timeout)
              note_stopped(generation, number, 0);  // it failed; it is respawned with the next view
            else if (is_stopping_for(generation))
              give_up("device " + std::to_string(number) + " does not stop computing");
          });
}

void generation_runner::check_stopping_later(std::uint32_t number) {
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), check_stopping_every,
                      messages::check_stopping{current_.number, number});
}

void generation_runner::on_check_stopping(const messages::check_stopping& check) {
  if (!is_stopping_for(check.generation)) return;
  options_.members->still_computing(check.generation);
  if (check.number == checks_before_warning)
    for (int number : stopping_)
      options_.log->warn("generation {} begins when device {} ends its action, which it has not for {}",
                         check.generation, number, config::to_text(check.number * check_stopping_every));
  check_stopping_later(check.number + 1);
}

void generation_runner::note_stopped(std::uint64_t generation, int device, std::uint64_t interrupted_step) {
  if (!is_stopping_for(generation)) return;
  current_.interrupted_step = std::max(current_.interrupted_step, interrupted_step);
  stopping_.erase(device);
  if (stopping_.empty()) acknowledge();
}

void generation_runner::acknowledge() {
  current_.now = phase::waiting;
  options_.members->quiesced(current_.number, options_.out->begin_generation(current_.number));
}

bool generation_runner::begin(const cluster::membership_view& formed) {
  if (formed.generation < current_.number || current_.now == phase::quiescing) return false;
  bool is_first = current_.now == phase::joining;
  current_.number = formed.generation;
  current_.now = phase::active;
  std::map<int, transport::process_address> peers;
  for (const auto& member : formed.members) peers[member.rank] = member.address;
  try {
    options_.out->connect(formed.generation, peers);
  } catch (const bad_input& problem) {
    fail_job(problem.what(), failure_kind::bad_input);
    return false;
  }
  respawn_failed();
  connections_.begin(formed);
  // Others may ask for tensors before this process has a job.
  connections_.bind(actor::actor_role::gatherer, options_.rank, children_.gatherer());
  if (options_.rank == scheduler_rank)
    spawn_scheduler();
  else
    connections_.use_scheduler_of(scheduler_rank);
  connections_.open();
  if (is_first) options_.faults->at(fault::fault_point::joined);
  return true;
}

/// A device that is restarted with its stage has stopped by now, so no thread uses the stage's program.
void generation_runner::respawn_failed() {
  for (const auto& one : to_respawn_) children_.respawn(one);
  if (!to_respawn_.empty() && children_.has_job()) connections_.publish(children_);
  to_respawn_.clear();
}

void generation_runner::spawn_scheduler() {
  scheduler::scheduler_options made;
  made.generation = current_.number;
  made.rank = options_.rank;
  made.world_size = options_.world_size;
  made.present = connections_.present();
  made.numeric_class = options_.numeric_class;
  made.members = options_.members;
  made.client = options_.client;
  made.log = options_.log;
  made.completed = completed_;
  made.progress_timeout = options_.progress_timeout;
  for (int rank = 0; rank < options_.world_size; ++rank)
    made.supervisors.push_back(rank == options_.rank
                                   ? caf::actor_cast<caf::actor>(self_->address())
                                   : connections_.remote(rank, actor::actor_role::supervisor, rank));
  auto scheduler = self_->spawn<actor::actor_of<scheduler::scheduler_state>>(made);
  children_.adopt(scheduler, {child_role::scheduler, 0});
  connections_.use_scheduler(scheduler);
  tell_job();
  if (stop_signal_) tell_stop(*stop_signal_);
  if (cancelled_call_) tell_cancelled(*cancelled_call_);
}

void generation_runner::on_recovered(std::uint64_t generation) {
  if (generation == current_.number) current_.interrupted_step = 0;
}

/// The next job's children are spawned anew; the gatherer belongs to all jobs.
void generation_runner::forget_job() {
  std::erase_if(to_respawn_, [](const child_id& one) { return one.role != child_role::gatherer; });
  current_.interrupted_step = 0;
}

void generation_runner::carry_out(const restart_command& command, const std::string& cause) {
  if (command.action == restart_action::fail_job)
    return fail_job(cause + " (and again after " + std::to_string(command.num_earlier) + " restarts)");
  to_respawn_.insert(command.children.begin(), command.children.end());
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), command.delay,
                      messages::generation_requested{current_.number, cause});
}

void generation_runner::request(const std::string& cause) {
  carry_out(tree_.on_generation_wanted(self_->clock().now()), cause);
}

void generation_runner::request_after_stall(const std::string& cause, const std::string& stall) {
  num_same_stalls_ = std::exchange(stall_, stall) == stall ? num_same_stalls_ + 1 : 1;
  auto allowed = options_.restarts.compute.intensity;
  if (num_same_stalls_ > allowed)
    return fail_job(cause + " (and again after " + std::to_string(allowed) + " restarts)");
  request(cause);
}

void generation_runner::fail_unless_restarted(std::uint64_t generation, const std::string& what,
                                              const caf::error& problem) {
  if (generation == current_.number && !actor::has_ended(problem)) fail_job(what + actor::describe(problem));
}

void generation_runner::give_up(const std::string& cause) {
  options_.log->error("{}", cause);
  if (options_.world_size > 1) return options_.members->suspect(options_.rank, cause);
  options_.client->put(job::job_failure{cause});
  fail_job(cause);
}

void generation_runner::tell_job() {
  if (children_.has_job() && connections_.local_scheduler())
    self_->send(connections_.local_scheduler(),
                messages::job_known{children_.shared_job(), children_.snapshot_writer()});
}

void generation_runner::tell_stop(int signal) {
  stop_signal_ = signal;
  if (connections_.local_scheduler()) self_->send(connections_.local_scheduler(), messages::stop_job{signal});
}

void generation_runner::tell_cancelled(std::uint32_t call) {
  cancelled_call_ = call;
  if (connections_.local_scheduler())
    self_->send(connections_.local_scheduler(), messages::cancel_training{call});
}

}  // namespace troupe::actors::supervisor
