#include "troupe/device/step_batches.hpp"

#include <algorithm>

#include "troupe/schedule/stage_graph.hpp"

namespace troupe::actors::devices {

void step_batches::begin_generation(const troupe::actors::messages::begin_generation& command) {
  schedule::stage_graph graph(command.job->training.num_stages, command.job->training.edges);
  takes_inputs_ = takes_targets_ = false;
  for (const auto& attached : command.stages) {
    takes_inputs_ |= graph.takes_samples(attached.stage);
    takes_targets_ |= graph.computes_loss(attached.stage);
  }
  loader_ = command.loader;
  call_.reset();
  held_.clear();
}

void step_batches::end_generation() {
  loader_ = {};
  held_.clear();
}

void step_batches::begin_call(const job::call_request& call, std::uint64_t first_step,
                              const execution::batch_assignment& assignment) {
  call_ = {call.index, call.source};
  assignment_ = assignment;
  next_wanted_ = first_step;
  held_.clear();
}

void step_batches::want(std::uint64_t first, std::uint64_t end) {
  if (!loader_) return;
  for (next_wanted_ = std::max(next_wanted_, first); next_wanted_ < end; ++next_wanted_)
    ask_for(next_wanted_);
}

void step_batches::ask_for(std::uint64_t step) {
  self_->send(loader_, messages::want_batch{call_->first, call_->second, assignment_.batch_of(step),
                                            assignment_.num_at_once});
}

void step_batches::replace_loader(const caf::actor& loader, std::uint64_t first) {
  if (!loader_) return;
  loader_ = loader;
  for (auto step = first; call_ && step < next_wanted_; ++step)
    if (!held_.contains(assignment_.batch_of(step))) ask_for(step);
}

/// Devices of one process share the samples: those that use a part of them are charged for it.
void step_batches::take(const messages::batch_ready& ready, std::uint64_t first) {
  if (call_ != std::pair(ready.call, ready.source) || ready.step < assignment_.batch_of(first)) return;
  account_scope charged(account_);
  if (takes_inputs_) charge_here(ready.samples.inputs, memory_use::messages);
  if (takes_targets_) charge_here(ready.samples.targets, memory_use::messages);
  held_.emplace(ready.step, ready.samples);
}

const batch* step_batches::batch_of(std::uint64_t step) const {
  auto found = held_.find(assignment_.batch_of(step));
  return found == held_.end() ? nullptr : &found->second;
}

}  // namespace troupe::actors::devices
