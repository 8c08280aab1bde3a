#include "troupe/stage/stage_actor.hpp"

#include <span>
#include <utility>

#include "troupe/job/metrics_tensor.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/wire/packed_state.hpp"

namespace troupe::actors::stage {

stage_state::stage_state(caf::event_based_actor* self, stage_options options)
    : cell_(options.cell),
      program_factory_(std::move(options.make_program)),
      account_(std::move(options.account)),
      copies_(self, std::move(options.copies)) {}

caf::behavior stage_state::make_behavior() {
  return {[this](const messages::restore_stage& command) { return on_restore(command); },
          [this](const messages::list_contents& wanted) { return on_contents(wanted); },
          [this](const messages::set_aside& command) { on_set_aside(command); },
          [this](const messages::state_copied& copied) { copies_.add(copied); },
          [this](const messages::write_copy& command) { copies_.write(command); },
          [this](const messages::io_replaced& replaced) { copies_.replace_io(replaced); },
          [this](const messages::replicate_again&) { copies_.replicate_again(); },
          [this](const messages::drop_before& command) { copies_.drop_before(command); },
          [this](const messages::list_parts&) { return copies_.list(); },
          [this](const messages::get_copy& wanted) { return copies_.get(wanted.step); }};
}

caf::result<messages::stage_ready> stage_state::on_restore(const messages::restore_stage& command) {
  copies_.begin_generation(command);
  if (!program_ || command.from_scratch) make_program();
  if (command.from_scratch) {
    copies_.clear();
    return messages::stage_ready{cell_, program_, {}};
  }
  const auto* own = copies_.find(command.step);
  if (!command.packed.defined() && !own) return copies_.no_copy_of(command.step);
  auto packed = command.packed.defined() ? command.packed : *own;
  messages::stage_ready ready{cell_, program_, {}};
  program_->discard();
  auto state = wire::unpack_state(packed);
  ready.metrics = job::extract_metrics(state, cell_.replica);
  program_->load_state(state);
  copies_.add(command.step, packed);
  return ready;
}

/// Makes the stage's program. Its initial values depend only on the job, so they are equal in every
/// incarnation of the process.
void stage_state::make_program() {
  account_scope charged(account_);
  program_.reset();  // before another one takes as much memory
  program_ = program_factory_(cell_);
  std::vector<named_tensor> found;
  for (const auto& [name, value] : program_->state())
    if (is_floating(value.dtype()) && !all_finite(std::span(&value, 1)))
      found.push_back({name, value.to({}).clone()});
  copies_.set_began_non_finite(std::make_shared<const std::vector<named_tensor>>(std::move(found)));
}

/// The program may have trained: what an optimizer begins with is asked of another one.
messages::contents_listed stage_state::on_contents(const messages::list_contents& wanted) {
  if (!program_) make_program();
  messages::contents_listed listed{program_->contents()};
  if (wanted.with_new_optimizer) listed.new_optimizer = program_factory_(cell_)->optimizer_state();
  return listed;
}

/// As after a restore of `step`, without the program: its new host makes another one.
void stage_state::on_set_aside(const messages::set_aside& command) {
  copies_.forget_after(command.step);
  program_.reset();
}

}  // namespace troupe::actors::stage
