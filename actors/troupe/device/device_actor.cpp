#include "troupe/device/device_actor.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "troupe/job/metrics_note.hpp"
#include "troupe/loader/messages.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/stage/messages.hpp"

namespace troupe {

device_state::device_state(caf::event_based_actor* self, device_options options)
    : self_(self), options_(std::move(options)), clock_(*options_.ring, options_.device) {}

caf::behavior device_state::make_behavior() {
  return {[this](const begin_generation& order) { on_begin(order); },
          [this](const grant& given) { on_grant(given); },
          [this](const tensor_arrived& arrived) { on_tensor(arrived); },
          [this](const batch_ready& ready) { on_batch(ready); },
          [this](const quiesce& order) { return on_quiesce(order); }};
}

void device_state::on_begin(const begin_generation& order) {
  order_ = order;
  generation_ = order.generation;
  inbox_.begin_generation(generation_);
  call_.reset();
  batches_.clear();
  copies_.clear();
  committed_step_ = 0;  // may be later than where this generation begins, if all was lost
  running_ = true;
  set_num_threads(order.job->num_threads);
}

stopped device_state::on_quiesce(const quiesce& order) {
  bool training = call_ && call_->kind == call_kind::train;
  stopped answer{order.generation, training ? step_ + (step_begun_ ? 1 : 0) : 0};
  running_ = false;
  order_ = {};
  batches_.clear();
  return answer;
}

void device_state::on_grant(const grant& given) {
  if (!running_ || given.generation != generation_) return;
  // Training may go on with other samples within a call, when it makes up for steps of earlier calls.
  if (!call_ || call_->index != given.call.index || call_->kind != given.call.kind ||
      call_->source != given.call.source)
    begin_call(given);
  end_step_ = given.end_step;
  copies_.insert(copies_.end(), given.copies.begin(), given.copies.end());
  if (given.committed_step > committed_step_) {
    committed_step_ = given.committed_step;
    for (auto& attached : order_.stages) self_->send(attached.owner, drop_before{committed_step_});
  }
  if (call_->kind == call_kind::hash)
    send_parameters();
  else
    run_ready();
}

void device_state::on_tensor(const tensor_arrived& arrived) {
  inbox_.put(arrived.tag, arrived.value);
  run_ready();
}

void device_state::on_batch(const batch_ready& ready) {
  // One call may train and then evaluate, and what an interrupted generation asked for may come late.
  if (!call_ || ready.call != call_->index || ready.source != call_->source || ready.step < step_) return;
  batches_.emplace(ready.step, ready.samples);
  run_ready();
}

const std::vector<action>& device_state::actions() const {
  return running_plan_.devices[static_cast<std::size_t>(options_.device)];
}

void device_state::begin_call(const grant& given) {
  call_ = given.call;
  step_ = given.first_step;
  next_wanted_ = step_;
  position_ = 0;
  step_begun_ = false;
  batches_.clear();
  running_plan_ = order_.job->training;
  if (call_->kind == call_kind::evaluate)
    running_plan_ = make_plan({schedule_kind::forward_only, order_.job->num_stages(), call_->num_microbatches,
                               order_.job->training.num_devices()});
}

attached_stage& device_state::stage(int number) {
  auto found = std::ranges::find(order_.stages, number, &attached_stage::stage);
  if (found == order_.stages.end())
    throw std::logic_error("[device] expected an attached stage, got stage " + std::to_string(number));
  return *found;
}

void device_state::run_ready() {
  while (running_ && call_ && !is_fenced() && step_ < end_step_) {
    if (!step_begun_) begin_step();
    if (position_ == actions().size()) {
      finish_step();
    } else {
      if (!run(actions()[position_])) return wait_briefly();
      ++position_;
      give_share(actions()[position_ - 1]);
    }
  }
}

/// What it waits for is often on its way already: looking for it a little longer is quicker than being woken
/// up. Others that want this core get it meanwhile.
void device_state::wait_briefly() {
  for (auto end = now_ns() + options_.patience.count(); self_->mailbox().empty() && now_ns() < end;)
    std::this_thread::yield();
}

void device_state::begin_step() {
  step_begun_ = true;
  clock_.begin_step();
  if (!order_.loader) return;
  auto ahead = step_ + static_cast<std::uint64_t>(order_.job->prefetch_steps);
  for (next_wanted_ = std::max(next_wanted_, step_); next_wanted_ < std::min(ahead, end_step_);
       ++next_wanted_)
    self_->send(order_.loader, want_batch{call_->index, call_->source, next_wanted_});
}

bool device_state::run(const action& what) {
  microbatch which{step_, what.microbatch, running_plan_.num_microbatches, call_->kind == call_kind::train};
  switch (what.kind) {
    case action_kind::forward:
      return run_forward(what, which);
    case action_kind::backward:
    case action_kind::input_gradient:
      return run_backward(what, which);
    case action_kind::weight_gradient:
      run_weight_gradient(what, which);
      return true;
    case action_kind::reduce_gradient:
      return run_reduction(what);
  }
  return true;
}

/// The rows of this microbatch in the step's batch; none while the batch is on its way.
std::optional<tensor> device_state::samples_for(const action& what, bool targets) {
  auto found = batches_.find(step_);
  if (found == batches_.end()) return {};
  const auto& all = targets ? found->second.targets : found->second.inputs;
  auto rows = all.extents()[0] / running_plan_.num_microbatches;
  return all.rows(what.microbatch * rows, rows);
}

bool device_state::run_forward(const action& what, const microbatch& which) {
  auto last = what.stage == order_.job->num_stages() - 1;
  std::optional<tensor> targets = tensor();
  if (last && !(targets = samples_for(what, true))) return false;
  auto input = what.stage == 0
                   ? samples_for(what, false)
                   : inbox_.take({generation_, step_, call_->index, static_cast<std::uint32_t>(what.stage),
                                  static_cast<std::uint32_t>(what.microbatch), tensor_role::activation});
  if (!input) return false;
  options_.faults->at(fault_point::forward, step_);
  auto begin = now_ns();
  auto output = stage(what.stage).program->forward(which, std::move(*input), std::move(*targets));
  if (which.training) clock_.saved(what.stage);
  clock_.add(what, begin, now_ns(), generation_, step_);
  if (!last) pass_on(what.stage + 1, tensor_role::activation, what.microbatch, std::move(output));
  return true;
}

bool device_state::run_backward(const action& what, const microbatch& which) {
  std::optional<tensor> gradient = tensor();
  if (what.stage != order_.job->num_stages() - 1)
    gradient = inbox_.take({generation_, step_, call_->index, static_cast<std::uint32_t>(what.stage),
                            static_cast<std::uint32_t>(what.microbatch), tensor_role::gradient});
  if (!gradient) return false;
  options_.faults->at(fault_point::backward, step_);
  auto begin = now_ns();
  auto& program = *stage(what.stage).program;
  auto input_gradient = program.backward_input(which, std::move(*gradient));
  // The stage before can go on while this one computes its weight gradients.
  if (what.stage > 0)
    pass_on(what.stage - 1, tensor_role::gradient, what.microbatch, std::move(input_gradient));
  if (what.kind == action_kind::backward) {
    program.backward_weight(which);
    clock_.released(what.stage);
  }
  clock_.add(what, begin, now_ns(), generation_, step_);
  return true;
}

void device_state::run_weight_gradient(const action& what, const microbatch& which) {
  auto begin = now_ns();
  stage(what.stage).program->backward_weight(which);
  clock_.released(what.stage);
  clock_.add(what, begin, now_ns(), generation_, step_);
}

void device_state::pass_on(int to_stage, tensor_role role, int microbatch, tensor value) {
  pass_on({generation_, step_, call_->index, static_cast<std::uint32_t>(to_stage),
           static_cast<std::uint32_t>(microbatch), role},
          std::move(value));
}

void device_state::pass_on(const tensor_tag& tag, tensor value) {
  auto at = static_cast<std::size_t>(tag.stage);
  if (order_.job->training.device_of_stage[at] == options_.device)
    inbox_.put(tag, std::move(value));
  else
    options_.out->send_tensor(order_.job->rank_of_stage[at], tag, std::move(value));
}

void device_state::finish_step() {
  step_done done{generation_,
                 call_->index,
                 step_,
                 static_cast<std::uint32_t>(options_.device),
                 {},
                 clock_.first_begin_ns(),
                 clock_.last_end_ns(),
                 clock_.busy_ns(),
                 0,
                 clock_.peak_activations(),
                 {}};
  if (call_->kind == call_kind::train && step_ + 1 == call_->target_step) done.actions = clock_.actions();
  for (auto& attached : order_.stages) {
    if (call_->kind == call_kind::train) {
      options_.faults->at(fault_point::apply, step_);
      auto begin = now_ns();
      attached.program->apply(step_);
      clock_.note(trace_kind::apply, begin, generation_, step_, attached.stage);
    }
    done.metrics += attached.program->take_metrics();
  }
  auto applied = step_ + 1;
  auto due = std::ranges::find(copies_, applied, &due_copy::step);
  if (call_->kind == call_kind::train && due != copies_.end()) {
    auto begin = now_ns();
    copy_states(*due, done.metrics);
    done.copy_ns = now_ns() - begin;
  }
  std::erase_if(copies_, [&](const due_copy& copy) { return copy.step <= applied; });
  self_->send(order_.scheduler, done);
  batches_.erase(step_);
  ++step_;
  position_ = 0;
  step_begun_ = false;
}

void device_state::copy_states(const due_copy& due, const step_metrics& metrics) {
  for (auto& attached : order_.stages) {
    auto begin = now_ns();
    auto state = attached.program->state();
    if (attached.stage == order_.job->num_stages() - 1) state.push_back(metrics_note(metrics));
    auto packed = pack_state(state, pool_);
    options_.faults->at(fault_point::copy_state, step_);
    self_->send(attached.owner, state_copied{generation_, due.step, std::move(packed), due.to_disk != 0});
    clock_.note(trace_kind::copy_state, begin, generation_, step_, attached.stage);
  }
}

void device_state::send_parameters() {
  for (auto& attached : order_.stages) {
    tensor_tag tag{generation_,           step_, call_->index, static_cast<std::uint32_t>(attached.stage), 0,
                   tensor_role::parameter};
    options_.out->send_tensor(order_.scheduler_rank, tag, pack_state(attached.program->parameters(), pool_));
  }
}

}  // namespace troupe
