#include "troupe/stage/copy_holder.hpp"

#include <algorithm>
#include <string>

#include "troupe/actor/actor_error.hpp"
#include "troupe/job/part_tag.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/snapshot_writer.hpp"

namespace troupe::actors::stage {

void copy_holder::begin_generation(const messages::restore_stage& command) {
  generation_ = command.generation;
  scheduler_ = command.scheduler;
  peer_copy_store_ = command.peer_copy_store;
  snapshot_writer_ = command.snapshot_writer;
  keeper_ = command.keeper;
  to_write_.clear();
  forget_after(command.step);
}

void copy_holder::forget_after(std::uint64_t step) {
  committed_step_ = std::min(committed_step_, step);
  copies_.erase(copies_.upper_bound(step), copies_.end());
}

void copy_holder::add(const messages::state_copied& copied) {
  if (copied.generation != generation_) return;
  add(copied.step, copied.packed);
  if (to_write_.erase(copied.step) > 0 || copied.to_disk) write({copied.step});
}

void copy_holder::add(std::uint64_t step, const tensor& packed) {
  copies_[step] = {generation_, packed};
  if (options_.latest) options_.latest->put(step, options_.part.id, packed);
  self_->send(scheduler_, messages::part_held{
                              generation_,
                              options_.rank,
                              {step, options_.part.id, generation_, recovery::part_location::own_memory}});
  send_to_keeper(step, packed);
}

void copy_holder::send_to_keeper(std::uint64_t step, const tensor& packed) const {
  if (!keeper_) return;
  auto tag =
      job::part_tag(transport::tensor_role::snapshot_part, generation_, step, options_.job, options_.part.id);
  options_.out->send_tensor(*keeper_, tag, packed);
}

void copy_holder::replicate_again() const {
  for (const auto& [step, kept] : copies_) send_to_keeper(step, kept.packed);
}

/// Of equal parts another replica's may be there, and its step committed, before the device has copied this
/// one.
void copy_holder::write(const messages::write_copy& command) {
  if (!layout::is_written(options_.part)) return;
  const auto* found = find(command.step);
  bool is_to_come = copies_.empty() || command.step > copies_.rbegin()->first;
  if (!found && is_to_come) {
    to_write_.insert(command.step);
    return;
  }
  if (!found) return refuse_to_write(command.step);
  self_->send(snapshot_writer_,
              messages::write_part{generation_, command.step, options_.part.id, *found, began_non_finite_});
}

/// Reports the part as not written, so that the scheduler gives up the snapshot.
void copy_holder::refuse_to_write(std::uint64_t step) {
  auto reason = to_string(options_.part.id) + " no longer holds the copy of step " + std::to_string(step);
  if (options_.log) options_.log->warn("snapshot given up step={} reason=\"{}\"", step, reason);
  messages::part_written refused;
  refused.generation = generation_;
  refused.step = step;
  refused.entry.part = options_.part.id;
  refused.problem = reason;
  self_->send(scheduler_, refused);
}

void copy_holder::replace_io(const messages::io_replaced& replaced) {
  peer_copy_store_ = replaced.peer_copy_store;
  snapshot_writer_ = replaced.snapshot_writer;
}

void copy_holder::drop_before(const messages::drop_before& command) {
  copies_.erase(copies_.begin(), copies_.lower_bound(command.step));
  committed_step_ = std::max(committed_step_, command.step);
  self_->send(peer_copy_store_, command);
}

messages::held_parts copy_holder::list() const {
  messages::held_parts held;
  held.committed_step = committed_step_;
  for (const auto& [step, kept] : copies_)
    held.parts.push_back({step, options_.part.id, kept.generation, recovery::part_location::own_memory});
  return held;
}

const tensor* copy_holder::find(std::uint64_t step) const {
  auto found = copies_.find(step);
  return found == copies_.end() ? nullptr : &found->second.packed;
}

caf::result<messages::stage_copy> copy_holder::get(std::uint64_t step) const {
  if (const auto* packed = find(step)) return messages::stage_copy{*packed};
  return no_copy_of(step);
}

caf::error copy_holder::no_copy_of(std::uint64_t step) const {
  return actor::unavailable(to_string(options_.part.id) + " holds no copy of step " + std::to_string(step));
}

}  // namespace troupe::actors::stage
