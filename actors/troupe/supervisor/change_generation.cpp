// supervisor_state: takes its node from one generation to the next.
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <utility>

#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

namespace {

/// The agent's views have every rank, and all take part.
view active_view(const membership_view& formed) {
  view present{formed.generation, {}};
  for (const auto& member : formed.members) present.members.push_back({{member.rank}, member_role::active});
  return present;
}

}  // namespace

void supervisor_state::on_fence(const fence_raised& fence) {
  if (fence.generation <= generation_) return;
  generation_ = fence.generation;
  phase_ = phase::quiescing;
  end_links(fence.losses, "generation " + std::to_string(generation_) + " has begun");
  restoring_.reset();
  reading_.clear();
  ready_.clear();
  options_.directory->set_scheduler({});
  if (local_scheduler_) self_->send_exit(local_scheduler_, caf::exit_reason::user_shutdown);
  local_scheduler_ = {};
  still_running_ = children_.devices().size();
  auto one_stopped = [this, generation = generation_](std::uint64_t interrupted_step) {
    if (generation != generation_ || phase_ != phase::quiescing) return;
    interrupted_step_ = std::max(interrupted_step_, interrupted_step);
    if (--still_running_ == 0) acknowledge_fence();
  };
  for (const auto& [number, device] : children_.devices())
    self_->request(device, options_.quiesce_timeout, quiesce{generation_})
        .then([one_stopped](const stopped& answer) { one_stopped(answer.interrupted_step); },
              [this, one_stopped, number = number](const caf::error& problem) {
                if (problem == caf::sec::request_timeout)
                  give_up("device " + std::to_string(number) + " does not stop computing");
                else
                  one_stopped(0);  // the device failed; it is respawned with the next view
              });
  if (children_.devices().empty()) acknowledge_fence();
}

void supervisor_state::acknowledge_fence() {
  phase_ = phase::waiting;
  options_.members->quiesced(generation_, options_.out->begin_generation(generation_));
}

void supervisor_state::on_view(const view_formed& formed) {
  const auto& view = formed.view;
  if (view.generation < generation_ || phase_ == phase::quiescing) return;
  bool first = phase_ == phase::joining;
  generation_ = view.generation;
  phase_ = phase::active;
  present_ = active_view(view);
  std::map<int, node_address> peers;
  for (const auto& member : view.members) peers[member.rank] = member.address;
  options_.out->connect(generation_, peers);
  respawn_failed();
  connect_nodes(view);
  options_.gate->open(generation_, links_);
  if (first) options_.faults->at(fault_point::joined);
  if (calls_.current()) announce_call();
  fetch_again();
  repeat_pause_request();
}

/// An error of an earlier generation may be about a process that has been replaced since.
void supervisor_state::on_peer_broken(const peer_broken& broken) {
  if (phase_ == phase::active && broken.generation == generation_)
    options_.members->suspect(broken.rank, broken.cause);
}

}  // namespace troupe
