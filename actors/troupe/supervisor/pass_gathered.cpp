// The part of supervisor_state that stands between the program and what calls give to it.
#include "troupe/actor/actor_of.hpp"
#include "troupe/gatherer/gatherer_actor.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

/// Made when it is first needed, and anew after it failed.
const caf::actor& supervisor_state::gatherer() {
  if (gatherer_) return gatherer_;
  gatherer_ = self_->spawn<actor_of<gatherer_state>>(
      gatherer_options{options_.rank, options_.world_size, options_.out, options_.client});
  adopt(gatherer_, {child::kind::gatherer, 0});
  options_.gate->bind({actor_role::gatherer, 0}, gatherer_);
  return gatherer_;
}

/// Before the scheduler hears that this node is in the call, and so before any of its tensors is sent.
void supervisor_state::expect_gathered(const call_request& call) {
  if (call.gives_to(options_.rank))
    self_->send(gatherer(), gather_tensors{generation_, call.index, call.num_gathered});
}

void supervisor_state::on_took(const program_took& took) {
  if (took.generation == generation_ && phase_ == phase::active)
    self_->send(scheduler_, gathered_taken{generation_, options_.rank, took.call, took.problem});
}

void supervisor_state::on_fetch(const fetch_kept& wanted) {
  fetched_ = wanted.request;
  fetch_again();
}

void supervisor_state::fetch_again() {
  if (fetched_ && phase_ == phase::active)
    self_->send(gatherer(), gather_tensors{generation_, fetched_->index, fetched_->num_gathered, true});
}

/// The scheduler of this generation hears of it, and those of later ones when they are started.
void supervisor_state::on_cancel(const cancel_call& order) {
  cancelled_call_ = order.call;
  if (local_scheduler_) self_->send(local_scheduler_, cancel_training{order.call});
}

}  // namespace troupe
