// supervisor_state: announces the program's calls to the scheduler and passes results back.
#include <algorithm>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe {

void supervisor_state::on_enter(const enter_call& entered) {
  fetched_.reset();
  follow(calls_.enter(entered.request));
}

void supervisor_state::follow(const call_queue::outcome& outcome) {
  for (const auto& result : outcome.told) options_.client->put(result);
  if (outcome.begins && phase_ == phase::active) announce_call();
}

/// Sends call_entered to the scheduler, and before it copies_held, once per generation and job: before the
/// state is restored the copies do not change, afterwards they are not needed. The children are asked for
/// them. (CAF keeps the timeout of every request until it is due, so a request per call would accumulate
/// timers.)
void supervisor_state::announce_call() {
  if (!job_ || inventory_in_ == generation_) return send_entered();
  if (std::exchange(asked_in_, generation_) == generation_) return;  // replies are under way
  inventory_ = {};
  inventory_.rank = options_.rank;
  inventory_.before = *options_.hosted;
  num_unanswered_ = children_.stages().size() + 2;
  ++inquiry_;
  for (const auto& [number, stage] : children_.stages()) request_inventory(stage);
  request_inventory(children_.replica_keeper());
  request_inventory(children_.disk_writer());
}

void supervisor_state::request_inventory(const caf::actor& holder) {
  auto answered = [this, inquiry = inquiry_](const held_parts& held) {
    if (inquiry == inquiry_ && asked_in_ == generation_) on_held_parts(held);
  };
  self_->request(holder, options_.restore_timeout, list_parts{})
      .then(answered, [answered](const caf::error&) { answered({}); });  // a failed child holds nothing
}

void supervisor_state::on_held_parts(const held_parts& held) {
  inventory_.parts.insert(inventory_.parts.end(), held.parts.begin(), held.parts.end());
  inventory_.committed_step = std::max(inventory_.committed_step, held.committed_step);
  inventory_.since_disk_s = std::max(inventory_.since_disk_s, held.since_disk_s);
  if (--num_unanswered_ > 0) return;
  inventory_in_ = generation_;
  self_->send(scheduler_, copies_held{generation_, std::move(inventory_)});
  if (calls_.current()) send_entered();
}

void supervisor_state::send_entered() {
  expect_gathered(*calls_.current());
  call_entered entered{generation_, options_.rank, *calls_.current(), calls_.completed()->size(),
                       interrupted_step_};
  entered.pause = pause_;
  if (job_) {
    entered.description_hash = job_->description.hash();
    // Once per generation, since each has a new scheduler.
    if (std::exchange(described_in_, generation_) != generation_) entered.description = job_->description;
  }
  self_->send(scheduler_, std::move(entered));
}

known_results supervisor_state::on_want_results(const want_results& wanted) const {
  return {calls_.completed()->piece(wanted.first)};
}

/// If this node has heard of the next generation, that one tells the result again.
caf::result<void> supervisor_state::on_finished(const call_finished& finished) {
  if (finished.generation != generation_)
    return unavailable("rank " + std::to_string(options_.rank) + " is in generation " +
                       std::to_string(generation_));
  follow(calls_.finished(finished.result));
  return caf::unit;
}

}  // namespace troupe
