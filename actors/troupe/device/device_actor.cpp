#include "troupe/device/device_actor.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "troupe/loader/messages.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/stage/messages.hpp"

namespace troupe {
namespace {

/// None for a call that runs no plan.
std::optional<pass_kind> pass_of(call_kind kind) {
  switch (kind) {
    case call_kind::train:
      return pass_kind::train;
    case call_kind::evaluate:
      return pass_kind::evaluate;
    case call_kind::predict:
      return pass_kind::predict;
    case call_kind::hash:
    case call_kind::barrier:
    case call_kind::gather:
      break;
  }
  return {};
}

}  // namespace

device_state::device_state(caf::event_based_actor* self, device_options options)
    : self_(self), options_(std::move(options)), clock_(*options_.ring, options_.device) {}

device_state::~device_state() { stop_receiving(); }

caf::behavior device_state::make_behavior() {
  return {[this](const begin_generation& order) { on_begin(order); },
          [this](const grant& given) { on_grant(given); },
          [this](const tensor_arrived& arrived) { on_tensor(arrived); },
          [this](const batch_ready& ready) { on_batch(ready); },
          [this](const loader_replaced& replaced) { on_loader_replaced(replaced); },
          [this](const quiesce& order) { return on_quiesce(order); }};
}

void device_state::on_begin(const begin_generation& order) {
  order_ = order;
  generation_ = order.generation;
  inbox_.begin_generation(generation_);
  call_.reset();
  interpreter_.reset();
  batches_.clear();
  copies_.clear();
  committed_step_ = 0;  // the last generation's may be later than this one's first step
  running_ = true;
  set_num_threads(order.job->num_threads);
}

stopped device_state::on_quiesce(const quiesce& order) {
  bool training = call_ && call_->kind == call_kind::train;
  stopped answer{order.generation, training ? step_ + (step_begun_ ? 1 : 0) : 0};
  stop_receiving();
  running_ = false;
  set_status(device_activity::idle);
  interpreter_.reset();
  order_ = {};
  batches_.clear();
  return answer;
}

void device_state::on_grant(const grant& given) {
  if (!running_ || given.generation != generation_) return;
  // A call that replays steps of earlier calls may change to another batch source.
  if (!call_ || call_->index != given.call.index || call_->kind != given.call.kind ||
      call_->source != given.call.source)
    begin_call(given);
  end_step_ = given.end_step;
  copies_.insert(copies_.end(), given.copies.begin(), given.copies.end());
  if (given.committed_step > committed_step_) {
    committed_step_ = given.committed_step;
    for (auto& attached : order_.stages) self_->send(attached.owner, drop_before{committed_step_});
  }
  if (call_->kind == call_kind::hash || call_->kind == call_kind::gather) {
    stop_receiving();
    call_->kind == call_kind::hash ? send_parameters() : send_weights();
  } else {
    run_ready();
  }
}

void device_state::on_tensor(const tensor_arrived& arrived) {
  inbox_.put(arrived.tag, arrived.value);
  run_ready();
}

void device_state::on_batch(const batch_ready& ready) {
  // The batch may be of another activity of this call, or requested by an interrupted generation.
  if (call_ && ready.call == call_->index && ready.source == call_->source && ready.step >= step_)
    batches_.emplace(ready.step, ready.samples);
  run_ready();
}

/// A batch of the previous loader that arrives late equals that of the new one.
void device_state::on_loader_replaced(const loader_replaced& replaced) {
  if (!order_.loader) return;  // it needs none, or has stopped and gets the loader with begin_generation
  order_.loader = replaced.loader;
  for (auto step = step_; call_ && step < next_wanted_; ++step)
    if (!batches_.contains(step)) self_->send(order_.loader, want_batch{call_->index, call_->source, step});
  run_ready();
}

void device_state::begin_call(const grant& given) {
  call_ = given.call;
  step_ = given.first_step;
  next_wanted_ = step_;
  step_begun_ = false;
  batches_.clear();
  interpreter_.reset();
  auto pass = pass_of(call_->kind);
  if (!pass) return;
  const auto& training = order_.job->training;
  interpreter_.emplace(
      plan_interpreter::options{.running = *pass == pass_kind::train
                                               ? training
                                               : forward_projection(training, call_->num_microbatches),
                                .device = options_.device,
                                .pass = *pass,
                                .generation = generation_,
                                .call = call_->index},
      [this](int stage) -> stage_program& { return program_of(stage); }, inbox_,
      static_cast<action_host&>(*this));
  interpreter_->begin_step(step_);
}

stage_program& device_state::program_of(int stage) const {
  auto found = std::ranges::find(order_.stages, stage, &attached_stage::stage);
  if (found == order_.stages.end())
    throw std::logic_error("[device] expected an attached stage, got stage " + std::to_string(stage));
  return *found->program;
}

void device_state::run_ready() {
  while (running_ && interpreter_ && !interpreter_->is_halted() && !is_fenced() && step_ < end_step_) {
    if (!step_begun_) begin_step();
    if (interpreter_->is_at_end()) {
      finish_step();
    } else if (!interpreter_->run_next()) {
      if (interpreter_->is_halted()) {
        finish_step();
        break;
      }
      set_status(interpreter_->needs_samples() ? device_activity::waiting_for_samples
                                               : device_activity::waiting_for_tensor);
      if (!receive_input()) return;
    }
  }
  set_status(device_activity::idle);
  stop_receiving();
}

void device_state::set_status(device_activity activity) {
  execution_position position;
  if (call_)
    position = {call_->index, call_->kind, activity, step_,
                static_cast<std::uint32_t>(interpreter_ ? interpreter_->position() : 0)};
  if (std::exchange(last_status_, position) != position) options_.status->set(position);
}

void device_state::begin_step() {
  step_begun_ = true;
  clock_.begin_step();
  non_finite_.clear();
  if (!order_.loader) return;
  auto ahead = step_ + static_cast<std::uint64_t>(order_.job->prefetch_steps);
  for (next_wanted_ = std::max(next_wanted_, step_); next_wanted_ < std::min(ahead, end_step_);
       ++next_wanted_)
    self_->send(order_.loader, want_batch{call_->index, call_->source, next_wanted_});
}

}  // namespace troupe
