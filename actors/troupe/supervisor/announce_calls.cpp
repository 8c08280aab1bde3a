// The part of supervisor_state that stands between the user's calls and the scheduler.
#include <algorithm>
#include <memory>
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

/// Tells the scheduler which call this node is in and what it could give to a recovery.
void supervisor_state::announce_call() {
  struct gathered {
    std::size_t num_missing = 0;
    node_inventory inventory;
  };
  auto answers = std::make_shared<gathered>();
  answers->inventory.rank = options_.rank;
  if (!job_) return send_entered(answers->inventory);
  answers->num_missing = stages_.size() + 2;
  auto one_answered = [this, answers, generation = generation_](const held_parts& held) {
    auto& inventory = answers->inventory;
    inventory.parts.insert(inventory.parts.end(), held.parts.begin(), held.parts.end());
    inventory.committed_step = std::max(inventory.committed_step, held.committed_step);
    inventory.since_disk_s = std::max(inventory.since_disk_s, held.since_disk_s);
    if (--answers->num_missing == 0 && generation == generation_ && calls_.current())
      send_entered(std::move(inventory));
  };
  auto ask = [&](const caf::actor& holder) {
    self_->request(holder, options_.restore_timeout, list_parts{})
        .then([one_answered](const held_parts& held) { one_answered(held); },
              [one_answered](const caf::error&) { one_answered({}); });  // it has failed: it holds nothing
  };
  for (const auto& [number, stage] : stages_) ask(stage);
  ask(replica_keeper_);
  ask(disk_writer_);
}

void supervisor_state::send_entered(node_inventory inventory) {
  expect_gathered(*calls_.current());
  call_entered entered{generation_, std::move(inventory), *calls_.current(), calls_.completed(),
                       interrupted_step_};
  if (job_) {
    entered.description_hash = job_->description.hash();
    // Each scheduler lives for one generation, and is told once.
    if (std::exchange(described_in_, generation_) != generation_) entered.description = job_->description;
  }
  self_->send(scheduler_, std::move(entered));
}

void supervisor_state::on_finished(const call_finished& finished) {
  if (finished.generation != generation_) return;
  auto outcome = calls_.finished(finished.result);
  if (options_.rank != scheduler_rank) confirm(finished.result.index);
  follow(outcome);
}

/// Straight into the transport, which sends what it has accepted before it ends: after the last call this
/// process ends at once, and messages between actors with it.
void supervisor_state::confirm(std::uint32_t index) {
  auto body = encode_message({actor_role::scheduler, 0},
                             caf::make_message(result_seen{generation_, options_.rank, index}));
  options_.out->send_control(scheduler_rank, generation_, *body);
}

}  // namespace troupe
