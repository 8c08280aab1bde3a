#include "troupe/peer_copy_store/peer_copy_store_actor.hpp"

#include <algorithm>

#include "troupe/actor/actor_error.hpp"
#include "troupe/messages/scheduler.hpp"

namespace troupe::actors::peer_copy_store {

peer_copy_store_state::peer_copy_store_state(caf::event_based_actor* self, peer_copy_store_options options)
    : self_(self), options_(std::move(options)) {}

caf::behavior peer_copy_store_state::make_behavior() {
  return {[this](const messages::store_generation& begun) { on_generation(begun); },
          [this](const messages::replica_arrived& arrived) { on_replica(arrived); },
          [this](const messages::get_replica& wanted) { return on_get(wanted); },
          [this](const messages::list_parts&) { return on_list(); },
          [this](const messages::drop_before& command) { on_drop(command); }};
}

void peer_copy_store_state::on_generation(const messages::store_generation& begun) {
  generation_ = begun.generation;
  scheduler_ = begun.scheduler;
  committed_step_ = std::min(committed_step_, begun.step);
  // Replicas that peers sent in this generation may have arrived already and are kept. Only later steps of
  // older generations were rolled back.
  std::erase_if(replicas_, [&](const auto& kept) {
    return kept.second.generation < generation_ && kept.first.first > begun.step;
  });
  for (const auto& part : on_list().parts)
    if (part.generation == generation_)
      self_->send(scheduler_, messages::part_held{generation_, options_.rank, part});
}

void peer_copy_store_state::on_replica(const messages::replica_arrived& arrived) {
  if (arrived.generation < generation_) return;
  if (options_.faults) options_.faults->at(fault::fault_point::keep_copy, arrived.step);
  replicas_[{arrived.step, arrived.part}] = {arrived.generation, arrived.packed};
  if (options_.latest) options_.latest->put(arrived.step, arrived.part, arrived.packed);
  if (scheduler_)
    self_->send(scheduler_, messages::part_held{arrived.generation,
                                                options_.rank,
                                                {arrived.step, arrived.part, arrived.generation,
                                                 recovery::part_location::peer_memory}});
}

caf::result<messages::stage_copy> peer_copy_store_state::on_get(const messages::get_replica& wanted) const {
  auto found = replicas_.find({wanted.step, wanted.part});
  if (found == replicas_.end())
    return actor::unavailable("no replica of " + to_string(wanted.part) + " at step " +
                              std::to_string(wanted.step));
  return messages::stage_copy{found->second.packed};
}

messages::held_parts peer_copy_store_state::on_list() const {
  messages::held_parts held;
  held.committed_step = committed_step_;
  for (const auto& [key, kept] : replicas_)
    held.parts.push_back({key.first, key.second, kept.generation, recovery::part_location::peer_memory});
  return held;
}

void peer_copy_store_state::on_drop(const messages::drop_before& command) {
  committed_step_ = std::max(committed_step_, command.step);
  replicas_.erase(replicas_.begin(), replicas_.lower_bound({command.step, layout::part_id{}}));
}

}  // namespace troupe::actors::peer_copy_store
