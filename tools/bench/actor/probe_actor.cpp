#include "bench/actor/probe_actor.hpp"

#include <algorithm>
#include <utility>

#include "troupe/trace/trace.hpp"

namespace troupe::bench {
namespace {

/// The number (step) of what the answering one says first; messages count from 1.
constexpr std::uint64_t ready = 0;

}  // namespace

caf::behavior probe_state::make_behavior() {
  return {[this](const start_probe& command) { on_start(command); },
          [this](const answer_probes& command) { on_answer_probes(command); },
          [this](const probe_arrived& arrived) { on_arrived(arrived); }};
}

void probe_state::on_start(const start_probe& command) {
  phase_ = phase::asking;
  command_ = command;
  spin_ = command.plan.spin;
  payload_ = tensor::zeros({command.plan.size_bytes}, dtype::u8);
  sent_ = 0;
  times_.clear();
  times_.reserve(command.plan.messages + 1);
  if (peer_is_ready_) send_more();
  receive();
}

void probe_state::on_answer_probes(const answer_probes& command) {
  phase_ = phase::answering;
  spin_ = command.spin;
  send(ready, false, acknowledgement_);
  receive();
}

void probe_state::on_arrived(const probe_arrived& arrived) {
  handle(arrived.tag, tensor(arrived.value));
  receive();
}

bool probe_state::take(int, const transport::tensor_tag& tag, tensor& value) {
  handle(tag, std::move(value));
  return true;
}

void probe_state::handle(const transport::tensor_tag& tag, tensor&& value) {
  bool answer_in_full = tag.role == transport::tensor_role::activation;
  if (phase_ == phase::answering)
    return send(tag.step, false, answer_in_full ? std::move(value) : acknowledgement_);
  if (tag.step == ready)
    peer_is_ready_ = true;
  else if (phase_ == phase::asking)
    times_.push_back(trace::now_ns());
  if (phase_ != phase::asking) return;
  if (times_.size() == command_.plan.messages + 1) return end();
  send_more();
}

void probe_state::send_more() {
  const auto& plan = command_.plan;
  if (times_.empty()) times_.push_back(trace::now_ns());
  for (auto answers = times_.size() - 1; sent_ < std::min(plan.messages, answers + plan.window);)
    send(++sent_, plan.answer_in_full, payload_);
}

/// An activation wants to come back, of another role is only counted.
void probe_state::send(std::uint64_t number, bool answer_in_full, tensor value) {
  transport::tensor_tag tag;
  tag.generation = options_.generation;
  tag.step = number;
  tag.role = answer_in_full ? transport::tensor_role::activation : transport::tensor_role::gradient;
  options_.link->send_tensor(options_.peer_rank, tag, std::move(value));
}

void probe_state::end() {
  phase_ = phase::idle;
  command_.done(std::exchange(times_, {}));
  command_ = {};
}

/// Until there is a message. If it is not its turn to receive, tensors come as messages too.
void probe_state::receive() {
  options_.link->receive_for(*this, spin_);
  if (phase_ == phase::idle) options_.link->stop_receiving(*this);
}

}  // namespace troupe::bench
