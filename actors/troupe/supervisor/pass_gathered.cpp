// supervisor_state: messages between gatherer, program and scheduler about a call's tensors.
#include "troupe/actor/actor_of.hpp"
#include "troupe/gatherer/gatherer_actor.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

/// Spawned when first needed, and again after a failure.
const caf::actor& supervisor_state::gatherer() {
  if (gatherer_) return gatherer_;
  gatherer_ = self_->spawn<actor_of<gatherer_state>>(
      gatherer_options{options_.rank, options_.world_size, options_.out, options_.client, options_.log});
  children_.adopt(gatherer_, {child_role::gatherer, 0});
  options_.gate->bind(name_of(actor_role::gatherer, options_.rank), gatherer_);
  return gatherer_;
}

/// Sent before call_entered, so the gatherer knows the call before any of its tensors is sent.
void supervisor_state::expect_gathered(const call_request& call) {
  if (call.delivers_to(options_.rank))
    self_->send(gatherer(), gather_tensors{generation_, call.index, call.num_gathered});
}

void supervisor_state::on_program_received(const program_received& took) {
  if (took.generation == generation_ && phase_ == phase::active)
    self_->send(scheduler_, gathered_received{generation_, options_.rank, took.call, took.problem});
}

void supervisor_state::on_fetch(const fetch_cached& wanted) {
  fetched_ = wanted.request;
  fetch_again();
}

void supervisor_state::fetch_again() {
  if (!fetched_ || phase_ != phase::active) return;
  gather_tensors order{generation_, fetched_->index, fetched_->num_gathered, true, {}};
  for (int rank = 0; rank < options_.world_size; ++rank)
    if (rank != options_.rank)
      order.caches.push_back(links_->proxy(rank, actor_role::gatherer, static_cast<std::uint32_t>(rank)));
  self_->send(gatherer(), order);
}

/// Sent to the scheduler of this generation now, and to those of later generations when they are spawned.
void supervisor_state::on_cancel(const cancel_call& order) {
  cancelled_call_ = order.call;
  if (local_scheduler_) self_->send(local_scheduler_, cancel_training{order.call});
}

}  // namespace troupe
