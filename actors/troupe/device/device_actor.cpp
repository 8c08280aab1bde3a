#include "troupe/device/device_actor.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "troupe/messages/stage.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/trace/recording.hpp"

namespace troupe::actors::devices {
namespace {

/// None for a call that devices are not told of, or that runs no plan.
std::optional<execution::pass_kind> pass_of(job::call_kind kind) {
  switch (kind) {
    case job::call_kind::train:
      return execution::pass_kind::train;
    case job::call_kind::evaluate:
      return execution::pass_kind::evaluate;
    case job::call_kind::predict:
      return execution::pass_kind::predict;
    case job::call_kind::hash:
    case job::call_kind::barrier:
    case job::call_kind::gather:
    case job::call_kind::memory:
    case job::call_kind::record:
    case job::call_kind::forward_backward:  // as a part of train
    case job::call_kind::optimizer_step:
      break;
  }
  return {};
}

}  // namespace

device_state::device_state(caf::event_based_actor* self, device_options options)
    : self_(self),
      options_(std::move(options)),
      waiter_(self, {options_.out, options_.spin, options_.fenced, options_.account, options_.from_replicas,
                     has_failed_to_copy_}),
      batches_(self, options_.account),
      account_(*options_.ring, options_.device),
      shared_memory_([out = options_.out](shape extents, dtype type) {
        return out->allocate_shared(std::move(extents), type);
      }),
      gradients_(shared_memory_),
      sums_(shared_memory_),
      own_sums_([](shape extents, dtype type) { return tensor::empty(std::move(extents), type); }) {}

caf::behavior device_state::make_behavior() {
  return {[this](const messages::begin_generation& command) { on_begin(command); },
          [this](const messages::step_credit& given) { on_credit(given); },
          [this](const messages::hash_parameters& wanted) { on_hash(wanted); },
          [this](const messages::tensor_arrived& arrived) { on_tensor(arrived); },
          [this](const messages::replica_tensors_arrived&) { run_ready(); },
          [this](const messages::copy_failed& failed) { on_copy_failed(failed); },
          [this](const messages::batch_ready& ready) { on_batch(ready); },
          [this](const messages::loader_replaced& replaced) { on_loader_replaced(replaced); },
          [this](const messages::quiesce& command) { return on_quiesce(command); },
          [this](const messages::inspect_device&) { return on_inspect(); },
          [this](const messages::run_on&) { on_run_on(); }};
}

void device_state::on_begin(const messages::begin_generation& command) {
  command_ = command;
  generation_ = command.generation;
  std::vector<int> stages;
  for (const auto& attached : command_.stages) stages.push_back(attached.stage);
  waiter_.begin_generation(generation_, mesh().replica_of(lane()), slice(), std::move(stages));
  call_.reset();
  interpreter_.reset();
  batches_.begin_generation(command_);
  copies_.clear();
  committed_step_ = 0;  // the last generation's may be later than this one's first step
  account_.begin_generation(place());
  copy_ns_ = 0;
  running_ = true;
  *has_failed_to_copy_ = false;
  set_num_threads(command.job->num_threads);
  share_memory();
  listen_to_groups();
}

/// All stages of a device compute on one place.
device device_state::place() const {
  return command_.stages.empty() ? device() : command_.stages.front().program->place();
}

/// A call of a group that has ended is news as a tensor of another replica is.
void device_state::listen_to_groups() {
  const auto& groups = command_.job->groups;
  if (!groups) return;
  auto tell = [device = self_->address(), arrived = options_.from_replicas] {
    arrived->note();
    if (!arrived->must_notify()) return;
    if (auto living = caf::actor_cast<caf::actor>(device))
      caf::anon_send(living, messages::replica_tensors_arrived{});
  };
  for (const auto& attached : command_.stages)
    if (has_group(attached.stage)) groups->listen(group_key(attached.stage), tell);
}

/// All devices of the generation before have stopped: no process reads this device's sums any more.
void device_state::share_memory() {
  sums_.clear();
  own_sums_.clear();
  gradients_.clear();
  account_scope charged(options_.account);
  memory_scope counted(memory_category::gradients);
  auto from_pool = [pool = gradients_](const shape& extents, dtype type) mutable {
    return pool.take(extents, type);
  };
  for (auto& attached : command_.stages)
    attached.program->share_gradients(
        is_shared(attached.stage) ? program::stage_parameters::memory_source(from_pool) : nullptr);
}

bool device_state::is_shared(int stage) const {
  const auto& job = *command_.job;
  return !has_group(stage) && is_on_several_members(job.placed, job.hosts, {.stage = stage, .slice = slice()},
                                                    job.training.mesh.num_replicas);
}

bool device_state::has_group(int stage) const {
  const auto& groups = command_.job->groups;
  return groups && groups->has(group_key(stage));
}

messages::stopped device_state::on_quiesce(const messages::quiesce& command) {
  bool training = call_ && call_->kind == job::call_kind::train;
  messages::stopped answer{command.generation, training ? step_ + (step_begun_ ? 1 : 0) : 0};
  waiter_.end_generation();
  if (command_.job && command_.job->groups) command_.job->groups->end();
  running_ = false;
  set_status(schedule::device_activity::idle);
  if (sends_) sends_->clear();
  if (state_copies_) state_copies_->clear();
  interpreter_.reset();
  deferred_step_.reset();
  command_ = {};
  batches_.end_generation();
  return answer;
}

void device_state::on_credit(const messages::step_credit& given) {
  trace::recording_to recorded(*options_.ring);
  if (!running_ || given.generation != generation_) return;
  // A call that replays steps of earlier calls may change to another batch source.
  if (!call_ || call_->index != given.call.index || call_->kind != given.call.kind ||
      call_->source != given.call.source)
    begin_call(given);
  end_ = std::max(end_, given.end());
  copies_.insert(copies_.end(), given.copies.begin(), given.copies.end());
  if (given.committed_step > committed_step_) {
    committed_step_ = given.committed_step;
    for (auto& attached : command_.stages)
      self_->send(attached.owner, messages::drop_before{committed_step_});
  }
  if (!is_answered_at_once(call_->kind)) return run_ready();
  waiter_.stop();
  if (call_->kind == job::call_kind::memory) return send_memory();
  account_scope charged(options_.account, memory_use::snapshots);
  call_->kind == job::call_kind::hash ? list_parameters() : send_weights();
}

void device_state::on_tensor(const messages::tensor_arrived& arrived) {
  waiter_.put(arrived.tag, arrived.value);
  run_ready();
}

void device_state::on_copy_failed(const messages::copy_failed& failed) {
  if (!running_ || failed.generation != generation_) return;
  set_status(schedule::device_activity::idle);
  std::rethrow_exception(failed.cause);
}

void device_state::on_batch(const messages::batch_ready& ready) {
  batches_.take(ready, step_);
  run_ready();
}

void device_state::on_loader_replaced(const messages::loader_replaced& replaced) {
  batches_.replace_loader(replaced.loader, step_);
  run_ready();
}

void device_state::begin_call(const messages::step_credit& given) {
  call_ = given.call;
  step_ = given.first_step;
  end_ = reached_ = {};
  metrics_ = {};
  replica_metrics_.clear();
  deferred_step_.reset();
  step_begun_ = false;
  interpreter_.reset();
  auto pass = pass_of(call_->kind);
  if (!pass) return batches_.begin_call(*call_, step_, {});
  const auto& training = command_.job->training;
  interpreter_.emplace(
      execution::plan_interpreter::options{
          .running = *pass == execution::pass_kind::train
                         ? training
                         : forward_projection(training, call_->num_microbatches),
          .device = options_.device,
          .pass = *pass,
          .generation = generation_,
          .call = call_->index,
          .num_batches = call_->num_batches,
          .shares_metrics = command_.job->shares_metrics},
      [this](int stage) -> program::stage_program& { return program_of(stage); }, waiter_.arrived(),
      static_cast<execution::action_host&>(*this));
  interpreter_->begin_step(step_);
  batches_.begin_call(*call_, step_, interpreter_->assignment());
}

program::stage_program& device_state::program_of(int stage) const {
  auto found = std::ranges::find(command_.stages, stage, &messages::attached_stage::stage);
  if (found == command_.stages.end())
    throw std::logic_error("[device] expected an attached stage, got stage " + std::to_string(stage));
  return *found->program;
}

void device_state::on_run_on() {
  runs_on_ = false;
  run_ready();
}

messages::device_report device_state::on_inspect() const {
  auto seen = last_status_;
  if (runs_on_) seen.activity = schedule::device_activity::computing;
  if (seen.step == step_) seen.action = position().action;
  return {generation_, seen, end_, waiter_.num_held()};
}

plan_position device_state::position() const {
  return {step_, static_cast<std::uint32_t>(interpreter_ ? interpreter_->position() : 0)};
}

bool device_state::may_run() const {
  return running_ && interpreter_ && !interpreter_->is_halted() && !waiter_.is_fenced() && has_more_to_run();
}

/// Where a job is paused within a step, the updates of the step before may be deferred.
bool device_state::has_more_to_run() const {
  return position() < end_ || interpreter_->has_deferred_updates();
}

/// Runs what is granted, and stops between two actions for messages; run_on then continues, after at least
/// one more action whatever arrives.
void device_state::run_ready() {
  if (runs_on_) return;
  trace::recording_to recorded(*options_.ring);
  account_scope charged(options_.account);
  while (may_run()) {
    if (!run_one()) return;
    if (may_run() && waiter_.has_mail()) {
      runs_on_ = true;
      return self_->send(self_, messages::run_on{});
    }
  }
  // Then one that hangs is found out.
  set_status(state_copies_ && state_copies_->is_busy() ? schedule::device_activity::copying_state
                                                       : schedule::device_activity::idle);
  waiter_.stop();
  tell_reached();
}

/// Runs the next action or ends the step, or waits until a tensor arrives. False: the device waits in its
/// mailbox.
bool device_state::run_one() {
  if (!step_begun_) begin_step();
  if (run_action()) return true;
  if (!deferred_step_ && (interpreter_->is_at_end() || interpreter_->is_halted())) {
    finish_step();
    return true;
  }
  auto at = position() < end_ ? interpreter_->waits_at() : interpreter_->deferred_at();
  bool needs_samples = at == position() && interpreter_->needs_samples();
  set_status(needs_samples ? schedule::device_activity::waiting_for_samples
                           : schedule::device_activity::waiting_for_tensor,
             at);
  if (position() < end_)
    account_.begin_wait(needs_samples ? trace::wait_reason::samples : trace::wait_reason::tensor,
                        interpreter_->actions()[at.action]);
  return waiter_.receive();
}

/// False: nothing was done. An action whose generation or step ends while it waits for other replicas is left
/// as it is.
bool device_state::run_action() {
  bool has_run = false;
  try {
    waiter_.take_from_replicas();
    if (position() < end_)
      has_run = interpreter_->run_next();
    else
      interpreter_->progress_deferred_updates();
  } catch (const program::action_interrupted&) {
    has_run = true;
  }
  if (!deferred_step_ || (interpreter_->has_deferred_updates() && !interpreter_->is_halted())) return has_run;
  finish_deferred_step();
  return true;
}

/// Whole steps are told of by step_done.
void device_state::tell_reached() {
  if (!running_ || !interpreter_ || end_.action == 0 || position() != end_ || reached_ == end_) return;
  reached_ = end_;
  const auto& actions = interpreter_->actions();
  auto next = actions.begin() + static_cast<std::ptrdiff_t>(interpreter_->position());
  // All at once: a sum of sums would have other bits.
  if (std::none_of(next, actions.end(), [](const action& op) { return op.kind == action_kind::forward; }))
    take_metrics();
  self_->send(command_.scheduler,
              messages::cut_reached{generation_, call_->index, static_cast<std::uint32_t>(options_.device),
                                    end_, told_metrics()});
}

/// Slices compute the same metrics: those of slice 0 count.
program::step_metrics device_state::told_metrics() const {
  return slice() == 0 ? metrics_ : program::step_metrics();
}

void device_state::take_metrics() {
  for (auto& attached : command_.stages) metrics_ += attached.program->take_metrics();
}

void device_state::set_status(schedule::device_activity activity, const plan_position& place) {
  messages::execution_position position;
  if (call_) position = {call_->index, call_->kind, activity, place.step, place.action};
  if (std::exchange(last_status_, position) != position) options_.status->set(position);
}

void device_state::begin_step() {
  step_begun_ = true;
  // The ends of passes that lanes run together, which nobody takes.
  waiter_.take_from_replicas();
  waiter_.arrived().forget_before(call_->index, deferred_step_ ? deferred_step_->step : step_);
  account_.begin_step(generation_, step_);
  if (interpreter_->actions().empty()) return;
  if (!interpreter_->has_batch(step_)) return interpreter_->skip_step();
  auto ahead = step_ + static_cast<std::uint64_t>(command_.job->prefetch_steps);
  auto num_granted = end_.step + (end_.action > 0 ? 1 : 0);  // steps, to their end or not
  auto end = std::min(ahead, num_granted);
  if (!interpreter_->has_batch(end - 1)) --end;  // the last one of an evaluation
  batches_.want(step_, end);
}

}  // namespace troupe::actors::devices
