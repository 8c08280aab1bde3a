#include "troupe/stage/stage_actor.hpp"

#include <algorithm>
#include <span>

#include "troupe/actor/actor_error.hpp"
#include "troupe/job/metrics_tensor.hpp"
#include "troupe/job/part_tag.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/snapshot_writer.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/wire/packed_state.hpp"

namespace troupe::actors::stage {

stage_state::stage_state(caf::event_based_actor* self, stage_options options)
    : self_(self), options_(std::move(options)) {}

caf::behavior stage_state::make_behavior() {
  return {[this](const messages::restore_stage& command) { return on_restore(command); },
          [this](const messages::state_copied& copied) { on_copied(copied); },
          [this](const messages::write_copy& command) { on_write(command); },
          [this](const messages::list_contents& wanted) { return on_contents(wanted); },
          [this](const messages::set_aside& command) { on_set_aside(command); },
          [this](const messages::io_replaced& replaced) { on_io_replaced(replaced); },
          [this](const messages::replicate_again&) {
            for (const auto& [step, kept] : copies_) send_replica(step, kept.packed);
          },
          [this](const messages::drop_before& command) { on_drop(command); },
          [this](const messages::list_parts&) { return on_list(); },
          [this](const messages::get_copy& wanted) { return on_get(wanted); }};
}

caf::result<messages::stage_ready> stage_state::on_restore(const messages::restore_stage& command) {
  generation_ = command.generation;
  scheduler_ = command.scheduler;
  peer_copy_store_ = command.peer_copy_store;
  snapshot_writer_ = command.snapshot_writer;
  keeper_ = command.keeper;
  committed_step_ = std::min(committed_step_, command.step);
  copies_.erase(copies_.upper_bound(command.step), copies_.end());
  to_write_.clear();
  if (!program_ || command.from_scratch) make_program();
  if (command.from_scratch) {
    copies_.clear();
    return messages::stage_ready{options_.part.cell, program_, {}};
  }
  auto found = copies_.find(command.step);
  if (!command.packed.defined() && found == copies_.end())
    return actor::unavailable(to_string(options_.part) + " holds no copy of step " +
                              std::to_string(command.step));
  auto packed = command.packed.defined() ? command.packed : found->second.packed;
  messages::stage_ready ready{options_.part.cell, program_, {}};
  program_->discard();
  auto state = wire::unpack_state(packed);
  ready.metrics = job::extract_metrics(state, options_.part.cell.replica);
  program_->load_state(state);
  copies_[command.step] = {generation_, packed};
  replicate(command.step, packed);
  return ready;
}

/// Makes the stage's program. Its initial values depend only on the job, so they are equal in every
/// incarnation of the process.
void stage_state::make_program() {
  account_scope charged(options_.account);
  program_ = options_.make_program(options_.part.cell.stage);
  std::vector<named_tensor> found;
  for (const auto& [name, value] : program_->state())
    if (is_floating(value.dtype()) && !all_finite(std::span(&value, 1)))
      found.push_back({name, value.to({}).clone()});
  began_non_finite_ = std::make_shared<const std::vector<named_tensor>>(std::move(found));
}

void stage_state::on_copied(const messages::state_copied& copied) {
  if (copied.generation != generation_) return;
  copies_[copied.step] = {copied.generation, copied.packed};
  replicate(copied.step, copied.packed);
  if (to_write_.erase(copied.step) > 0 || copied.to_disk) on_write({copied.step});
}

/// Of equal parts another replica's may be there, and its step committed, before the device has copied this
/// one.
void stage_state::on_write(const messages::write_copy& command) {
  if (!layout::is_written({options_.part, options_.content})) return;
  auto found = copies_.find(command.step);
  bool is_to_come = copies_.empty() || command.step > copies_.rbegin()->first;
  if (found == copies_.end() && is_to_come) {
    to_write_.insert(command.step);
    return;
  }
  if (found == copies_.end()) return refuse_to_write(command.step);
  self_->send(snapshot_writer_, messages::write_part{generation_, command.step, options_.part,
                                                     found->second.packed, began_non_finite_});
}

/// Reports the part as not written, so that the scheduler gives up the snapshot.
void stage_state::refuse_to_write(std::uint64_t step) {
  auto reason = to_string(options_.part) + " no longer holds the copy of step " + std::to_string(step);
  if (options_.log) options_.log->warn("snapshot given up step={} reason=\"{}\"", step, reason);
  messages::part_written refused;
  refused.generation = generation_;
  refused.step = step;
  refused.entry.part = options_.part;
  refused.problem = reason;
  self_->send(scheduler_, refused);
}

/// Reports the copy to the scheduler and to the program, and sends a replica to its keeper, if it has one.
void stage_state::replicate(std::uint64_t step, const tensor& packed) {
  if (options_.latest) options_.latest->put(step, options_.part, packed);
  self_->send(scheduler_,
              messages::part_held{generation_,
                                  options_.rank,
                                  {step, options_.part, generation_, recovery::part_location::own_memory}});
  send_replica(step, packed);
}

void stage_state::send_replica(std::uint64_t step, const tensor& packed) {
  if (keeper_)
    options_.out->send_tensor(
        *keeper_,
        job::part_tag(transport::tensor_role::snapshot_part, generation_, step, options_.job, options_.part),
        packed);
}

void stage_state::on_io_replaced(const messages::io_replaced& replaced) {
  peer_copy_store_ = replaced.peer_copy_store;
  snapshot_writer_ = replaced.snapshot_writer;
}

/// The program may have trained: what an optimizer begins with is asked of another one.
messages::contents_listed stage_state::on_contents(const messages::list_contents& wanted) {
  if (!program_) make_program();
  messages::contents_listed listed{whole_contents(program_->state())};
  if (wanted.with_new_optimizer)
    listed.new_optimizer = options_.make_program(options_.part.cell.stage)->optimizer_state();
  return listed;
}

/// As after a restore of `step`, without the program: its new host makes another one.
void stage_state::on_set_aside(const messages::set_aside& command) {
  committed_step_ = std::min(committed_step_, command.step);
  copies_.erase(copies_.upper_bound(command.step), copies_.end());
  program_.reset();
}

void stage_state::on_drop(const messages::drop_before& command) {
  copies_.erase(copies_.begin(), copies_.lower_bound(command.step));
  committed_step_ = std::max(committed_step_, command.step);
  self_->send(peer_copy_store_, command);
}

messages::held_parts stage_state::on_list() const {
  messages::held_parts held;
  held.committed_step = committed_step_;
  for (const auto& [step, kept] : copies_)
    held.parts.push_back({step, options_.part, kept.generation, recovery::part_location::own_memory});
  return held;
}

caf::result<messages::stage_copy> stage_state::on_get(const messages::get_copy& wanted) const {
  auto found = copies_.find(wanted.step);
  if (found == copies_.end())
    return actor::unavailable(to_string(options_.part) + " holds no copy of step " +
                              std::to_string(wanted.step));
  return messages::stage_copy{found->second.packed};
}

}  // namespace troupe::actors::stage
