#include "troupe/supervisor/supervisor_actor.hpp"

#include <caf/actor_ostream.hpp>
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/actor/failure.hpp"
#include "troupe/link/link_actor.hpp"
#include "troupe/link/wire_table.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/snapshotter/messages.hpp"

namespace troupe {

supervisor_state::supervisor_state(caf::event_based_actor* self, supervisor_options options)
    : self_(self), options_(std::move(options)) {
  self_->set_down_handler([this](const caf::down_msg& down) { on_down(down); });
  self_->set_exception_handler([this](std::exception_ptr& thrown) {
    auto problem = failure_from(thrown);
    give_up("the supervisor of rank " + std::to_string(options_.rank) + " failed: " + describe(problem));
    return problem;
  });
}

supervisor_state::~supervisor_state() {
  for (const auto& [address, one] : children_)
    if (auto child = caf::actor_cast<caf::actor>(address))
      caf::anon_send_exit(child, caf::exit_reason::user_shutdown);
}

caf::behavior supervisor_state::make_behavior() {
  return {[this](const define_job& order) { on_define(order); },
          [this](const add_source& added) {
            sources_.push_back(added.source);
            if (loader_) self_->send(loader_, added);
          },
          [this](const enter_call& entered) { on_enter(entered); },
          [this](const fence_raised& fence) { on_fence(fence); },
          [this](const view_formed& formed) { on_view(formed); },
          [this](const restore_order& order) { on_restore(order); },
          [this](const state_arrived& arrived) { on_state(arrived); },
          [this](const call_finished& finished) { on_finished(finished); },
          [this](const peer_broken& broken) { on_peer_broken(broken); },
          [this](const generation_wanted& wanted) {
            options_.members->request_generation(wanted.current, wanted.cause);
          },
          [this](const recovery_done& done) {
            if (done.report.generation == generation_) interrupted_step_ = 0;
            options_.client->put(done.report);
          },
          [this](const job_ended& ended) { options_.client->put(job_failure{ended.cause}); }};
}

// ---- the user's thread

void supervisor_state::on_define(const define_job& order) {
  job_ = order.job;
  spawn_children();
  if (phase_ == phase::active && local_scheduler_) give_job_to_scheduler();
}

void supervisor_state::on_enter(const enter_call& entered) {
  auto index = entered.request.index;
  if (index < completed_.size()) {
    options_.client->put(completed_[index]);
    return;
  }
  if (call_) {
    next_calls_.push_back(entered.request);
    return;
  }
  call_ = entered.request;
  if (phase_ == phase::active) announce_call();
}

// ---- membership

void supervisor_state::on_fence(const fence_raised& fence) {
  if (fence.generation <= generation_) return;
  generation_ = fence.generation;
  phase_ = phase::quiescing;
  restoring_.reset();
  ready_.clear();
  options_.directory->set_scheduler({});
  if (local_scheduler_) self_->send_exit(local_scheduler_, caf::exit_reason::user_shutdown);
  local_scheduler_ = {};
  still_running_ = devices_.size();
  auto one_stopped = [this, generation = generation_](std::uint64_t interrupted_step) {
    if (generation != generation_ || phase_ != phase::quiescing) return;
    interrupted_step_ = std::max(interrupted_step_, interrupted_step);
    if (--still_running_ == 0) acknowledge_fence();
  };
  for (const auto& [number, device] : devices_)
    self_->request(device, options_.quiesce_timeout, quiesce{generation_})
        .then([one_stopped](const stopped& answer) { one_stopped(answer.interrupted_step); },
              [this, one_stopped, number = number](const caf::error& problem) {
                if (problem == caf::sec::request_timeout)
                  give_up("device " + std::to_string(number) + " does not stop computing");
                else
                  one_stopped(0);  // it has failed, and is started again with the next view
              });
  if (devices_.empty()) acknowledge_fence();
}

void supervisor_state::acknowledge_fence() {
  phase_ = phase::waiting;
  options_.members->quiesced(generation_, options_.out->begin_generation(generation_));
}

void supervisor_state::on_view(const view_formed& formed) {
  const auto& view = formed.view;
  if (view.generation < generation_ || phase_ == phase::quiescing) return;
  bool first = phase_ == phase::outside;
  generation_ = view.generation;
  phase_ = phase::active;
  std::map<int, node_address> peers;
  for (const auto& member : view.members) peers[member.rank] = member.address;
  options_.out->connect(generation_, peers);
  respawn_failed();
  connect_nodes();
  options_.gate->open(generation_);
  if (first) options_.faults->at(fault_point::joined);
  if (call_) announce_call();
}

void supervisor_state::on_peer_broken(const peer_broken& broken) {
  if (phase_ == phase::active) options_.members->suspect(broken.rank, broken.cause);
}

// ---- restoring

void supervisor_state::on_restore(const restore_order& order) {
  if (order.generation != generation_ || phase_ != phase::active) return;
  if (generation_ > 1) options_.faults->at(fault_point::recovery);
  restoring_ = order;
  ready_.clear();
  restored_metrics_ = {};
  if (order.completed.size() > completed_.size()) completed_ = order.completed;
  self_->send(snapshotter_, snapshot_generation{generation_, order.plan.step, scheduler_});
  if (order.plan.from_scratch) {
    for (const auto& [number, actor] : stages_)
      hand_to_stage(number, {generation_, 0, true, {}, scheduler_, snapshotter_});
    return;
  }
  for (const auto& source : order.plan.sources) {
    if (hosts(static_cast<int>(source.stage)))
      restore_one(source);
    else if (source.rank == options_.rank && source.place == part_place::peer_memory)
      send_copy(source);
  }
}

void supervisor_state::restore_one(const restore_source& source) {
  auto stage = static_cast<int>(source.stage);
  restore_stage order{generation_, restoring_->plan.step, false, {}, scheduler_, snapshotter_};
  if (source.place == part_place::own_memory) return hand_to_stage(stage, order);
  if (source.place == part_place::peer_memory) {
    auto arrived = states_arrived_.find(stage);
    if (states_generation_ != generation_ || arrived == states_arrived_.end()) return;  // on_state goes on
    order.packed = arrived->second;
    return hand_to_stage(stage, order);
  }
  self_->request(snapshotter_, options_.restore_timeout, read_from_disk{order.step, source.stage})
      .then(
          [this, stage, order](const stage_copy& copy) mutable {
            order.packed = copy.packed;
            hand_to_stage(stage, order);
          },
          [this, generation = generation_](const caf::error& problem) {
            fail_unless_restarted(generation, "a snapshot cannot be read: ", problem);
          });
}

void supervisor_state::send_copy(const restore_source& source) {
  auto step = restoring_->plan.step;
  auto generation = generation_;
  auto host = job_->rank_of_stage(static_cast<int>(source.stage));
  self_->request(snapshotter_, options_.restore_timeout, get_replica{step, source.stage})
      .then(
          [this, generation, step, host, stage = source.stage](const stage_copy& copy) {
            options_.out->send_tensor(host, {generation, step, 0, stage, 0, tensor_role::snapshot_part},
                                      copy.packed);
          },
          [this, generation](const caf::error& problem) {
            fail_unless_restarted(generation, "a peer's state is gone: ", problem);
          });
}

void supervisor_state::on_state(const state_arrived& arrived) {
  if (arrived.generation < generation_) return;
  if (arrived.generation > states_generation_) states_arrived_.clear();
  states_generation_ = arrived.generation;
  auto stage = static_cast<int>(arrived.stage);
  states_arrived_[stage] = arrived.packed;
  if (restoring_ && arrived.generation == generation_)
    hand_to_stage(stage,
                  {generation_, restoring_->plan.step, false, arrived.packed, scheduler_, snapshotter_});
}

void supervisor_state::hand_to_stage(int stage, restore_stage order) {
  if (order.generation != generation_) return;
  self_->request(stages_.at(stage), options_.restore_timeout, order)
      .then(
          [this, generation = generation_](const stage_ready& ready) {
            if (generation == generation_) on_stage_ready(ready);
          },
          [this, generation = generation_](const caf::error& problem) {
            fail_unless_restarted(generation, "a stage cannot be restored: ", problem);
          });
}

void supervisor_state::on_stage_ready(const stage_ready& ready) {
  restored_metrics_ += ready.metrics;
  ready_[ready.stage] = {ready.stage, ready.program, stages_.at(ready.stage)};
  if (ready_.size() == stages_.size()) begin_devices();
}

void supervisor_state::begin_devices() {
  auto made = make_device_job();
  for (const auto& [number, device] : devices_) {
    begin_generation order{generation_, made, {}, scheduler_, {}, 0};
    for (const auto& [stage, attached] : ready_) {
      if (job_->training.device_of_stage[static_cast<std::size_t>(stage)] != number) continue;
      order.stages.push_back(attached);
      if (stage == 0 || stage == job_->training.num_stages - 1) order.loader = loader_;
    }
    self_->send(device, order);
  }
  states_arrived_.clear();
  self_->send(scheduler_, node_restored{generation_, options_.rank, restored_metrics_});
}

std::shared_ptr<const device_job> supervisor_state::make_device_job() const {
  auto made = std::make_shared<device_job>();
  made->training = job_->training;
  made->rank_of_stage = job_->ranks_of_stages();
  made->num_threads = job_->num_threads;
  return made;
}

// ---- calls

/// Tells the scheduler which call this node is in and what it could give to a recovery.
void supervisor_state::announce_call() {
  if (!job_) return send_entered({});
  auto answers = std::make_shared<std::pair<std::size_t, std::vector<held_part>>>(stages_.size() + 1,
                                                                                  std::vector<held_part>());
  auto one_answered = [this, answers, generation = generation_](const std::vector<held_part>& parts) {
    answers->second.insert(answers->second.end(), parts.begin(), parts.end());
    if (--answers->first == 0 && generation == generation_ && call_) send_entered(std::move(answers->second));
  };
  auto ask = [&](const caf::actor& holder) {
    self_->request(holder, options_.restore_timeout, list_parts{})
        .then([one_answered](const held_parts& held) { one_answered(held.parts); },
              [one_answered](const caf::error&) { one_answered({}); });  // it has failed: it holds nothing
  };
  for (const auto& [number, stage] : stages_) ask(stage);
  ask(snapshotter_);
}

void supervisor_state::send_entered(std::vector<held_part> parts) {
  node_inventory inventory{options_.rank, 0, std::move(parts)};
  self_->send(scheduler_,
              call_entered{generation_, std::move(inventory), *call_, completed_, interrupted_step_});
}

void supervisor_state::on_finished(const call_finished& finished) {
  if (finished.generation != generation_) return;
  const auto& result = finished.result;
  if (result.index == completed_.size()) completed_.push_back(result);
  if (options_.rank != scheduler_rank) confirm(result.index);
  if (!call_) return;
  // The user may have left a call by an exception from a callback: the next one begins when this one is over.
  if (call_->index == completed_.size() && phase_ == phase::active) return announce_call();
  if (call_->index != result.index) return;
  call_.reset();
  options_.client->put(result);
  if (next_calls_.empty()) return;
  auto next = next_calls_.front();
  next_calls_.pop_front();
  on_enter({next});
}

/// Straight into the transport, which sends what it has accepted before it ends: after the last call this
/// process ends at once, and messages between actors with it.
void supervisor_state::confirm(std::uint32_t index) {
  auto body = encode_message({actor_role::scheduler, 0},
                             caf::make_message(result_seen{generation_, options_.rank, index}));
  options_.out->send_control(scheduler_rank, generation_, *body);
}

// ---- children

std::string supervisor_state::to_string(const child& one) {
  switch (one.what) {
    case child::kind::device:
      return "device " + std::to_string(one.number);
    case child::kind::stage:
      return "stage " + std::to_string(one.number);
    case child::kind::loader:
      return "the loader";
    case child::kind::snapshotter:
      return "the snapshotter";
    case child::kind::scheduler:
      return "the scheduler";
    case child::kind::link:
      return "the link to rank " + std::to_string(one.number);
  }
  return "an actor";
}

void supervisor_state::adopt(const caf::actor& actor, child one) {
  children_[actor.address()] = one;
  self_->monitor(actor);
}

void supervisor_state::spawn_children() {
  spawn_snapshotter();
  spawn_loader();
  for (int stage = 0; stage < job_->training.num_stages; ++stage)
    if (job_->rank_of_stage(stage) == options_.rank) spawn_stage(stage);
  for (int device = 0; device < job_->training.num_devices(); ++device)
    if (job_->rank_of_device(device) == options_.rank) spawn_device(device);
  publish_children();
}

void supervisor_state::publish_children() {
  stage_directory::receivers all{
      caf::actor_cast<caf::actor>(self_->address()), snapshotter_, local_scheduler_, {}};
  for (const auto& [stage, actor] : stages_)
    all.devices[stage] = devices_.at(job_->training.device_of_stage[static_cast<std::size_t>(stage)]);
  options_.directory->set(std::move(all));
  for (const auto& [number, device] : devices_)
    options_.gate->bind({actor_role::device, static_cast<std::uint32_t>(number)}, device);
}

/// Follows the decision of the restart policy: failed actors start again with the next view.
void supervisor_state::on_down(const caf::down_msg& down) {
  auto found = children_.find(down.source);
  if (found == children_.end()) return;
  auto failed = found->second;
  children_.erase(found);
  if (!down.reason || down.reason == caf::exit_reason::user_shutdown) return;
  auto cause =
      to_string(failed) + " on rank " + std::to_string(options_.rank) + " failed: " + describe(down.reason);
  options_.log->error("actor failed actor=\"{}\" reason=\"{}\"", to_string(failed), describe(down.reason));
  if (is_bad_input(down.reason)) return fail(cause);
  auto now = std::chrono::steady_clock::now();
  auto decision = decide_restart(options_.restarts, 0, 1, restart_times_, now);
  if (decision.escalate)
    return fail(cause + " (and again after " + std::to_string(restart_times_.size()) + " restarts)");
  restart_times_.push_back(now);
  if (failed.what != child::kind::scheduler) to_respawn_.push_back(failed);
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), decision.delay,
                      generation_wanted{generation_, cause});
}

void supervisor_state::respawn_failed() {
  for (const auto& failed : to_respawn_) {
    if (failed.what == child::kind::device) spawn_device(failed.number);
    if (failed.what == child::kind::stage) spawn_stage(failed.number);
    if (failed.what == child::kind::loader) spawn_loader();
    if (failed.what == child::kind::snapshotter) spawn_snapshotter();
  }
  if (!to_respawn_.empty()) publish_children();
  to_respawn_.clear();
}

void supervisor_state::fail(const std::string& cause) { options_.members->fail_job(cause); }

/// A child that has failed is started again with the next generation; one that answers that it cannot, never
/// will.
void supervisor_state::fail_unless_restarted(std::uint64_t generation, const std::string& what,
                                             const caf::error& problem) {
  if (generation == generation_ && problem != caf::sec::request_receiver_down) fail(what + describe(problem));
}

/// This process cannot go on: it is lost for the job, and the job with it if there is no other.
void supervisor_state::give_up(const std::string& cause) {
  options_.log->error("{}", cause);
  if (options_.world_size > 1) return options_.members->suspect(options_.rank, cause);
  options_.client->put(job_failure{cause});
  fail(cause);
}

}  // namespace troupe
