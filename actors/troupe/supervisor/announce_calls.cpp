// supervisor_state: announces the program's calls to the scheduler and passes results back.
#include <algorithm>
#include <utility>

#include "troupe/link/wire_table.hpp"
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

/// Sends call_entered with this node's inventory of copies to the scheduler. The inventory is requested from
/// the children once per generation: before the state is restored it does not change, afterwards it is not
/// needed. (CAF keeps the timeout of every request until it is due, so a request per call would accumulate
/// timers.)
void supervisor_state::announce_call() {
  if (!job_) return send_entered({options_.rank, 0, {}});
  if (inventory_in_ == generation_) return send_entered(inventory_now());
  if (std::exchange(asked_in_, generation_) == generation_) return;  // replies are under way
  inventory_ = {};
  inventory_.rank = options_.rank;
  num_unanswered_ = children_.stages().size() + 2;
  ++inquiry_;
  for (const auto& [number, stage] : children_.stages()) request_inventory(stage);
  request_inventory(children_.replica_keeper());
  request_inventory(children_.disk_writer());
}

void supervisor_state::request_inventory(const caf::actor& holder) {
  auto answered = [this, inquiry = inquiry_](const held_parts& held) {
    if (inquiry == inquiry_ && inventory_in_ != generation_) on_held_parts(held);
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
  inventory_at_ = self_->clock().now();
  if (calls_.current()) send_entered(inventory_);
}

node_inventory supervisor_state::inventory_now() const {
  auto inventory = inventory_;
  std::chrono::duration<double> elapsed = self_->clock().now() - inventory_at_;
  inventory.since_disk_s += elapsed.count();
  return inventory;
}

void supervisor_state::send_entered(node_inventory inventory) {
  expect_gathered(*calls_.current());
  call_entered entered{generation_, std::move(inventory), *calls_.current(), calls_.completed()->size(),
                       interrupted_step_};
  entered.pause = pause_;
  if (job_) {
    entered.description_hash = job_->description.hash();
    // Once per generation, since each has a new scheduler.
    if (std::exchange(described_in_, generation_) != generation_) entered.description = job_->description;
  }
  self_->send(scheduler_, std::move(entered));
}

void supervisor_state::on_want_results(const want_results& wanted) {
  if (wanted.generation == generation_)
    self_->send(scheduler_,
                known_results{generation_, options_.rank, calls_.completed()->piece(wanted.first)});
}

void supervisor_state::on_finished(const call_finished& finished) {
  if (finished.generation != generation_) return;
  auto outcome = calls_.finished(finished.result);
  if (options_.rank != scheduler_rank) confirm(finished.result.index);
  follow(outcome);
}

/// Sends result_seen directly by the transport, which flushes accepted messages before it is destroyed. After
/// the last call this process exits at once, and a message to the link actor might be lost.
void supervisor_state::confirm(std::uint32_t index) {
  auto body = encode_message({actor_role::scheduler, 0},
                             caf::make_message(result_seen{generation_, options_.rank, index}));
  options_.out->send_control(scheduler_rank, generation_, *body);
}

}  // namespace troupe
