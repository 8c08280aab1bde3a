// device_state: sends weights, outputs and what it holds to the processes whose programs receive them
// (gather, predict, memory), and hashes weights.
#include <map>

#include "troupe/device/device_actor.hpp"
#include "troupe/program/device_memory.hpp"
#include "troupe/snapshot/weights_hash.hpp"

namespace troupe::actors::devices {

void device_state::send_weights() {
  if (!is_of_first_replica()) return;
  for (auto& attached : command_.stages) {
    auto stage = static_cast<std::uint32_t>(attached.stage);
    options_.faults->at(fault::fault_point::gather, call_->index);
    send_gathered(stage, stage, pack_state(attached.program->weights(), pool_));
  }
}

void device_state::list_parameters() {
  if (!is_of_first_replica()) return;
  for (auto& attached : command_.stages) {
    messages::parameters_listed listed{
        generation_, call_->index, static_cast<std::uint32_t>(attached.stage), {}};
    for (auto& each : attached.program->parameters()) listed.names.push_back(std::move(each.name));
    self_->send(command_.scheduler, std::move(listed));
  }
}

void device_state::on_hash(const messages::hash_parameters& wanted) {
  if (!running_ || wanted.generation != generation_ || !call_ || wanted.call != call_->index) return;
  account_scope charged(options_.account, memory_use::snapshots);
  std::map<std::string, tensor> parameters;
  for (auto& each : program_of(static_cast<int>(wanted.stage)).parameters())
    parameters.emplace(std::move(each.name), std::move(each.value));
  snapshot::weights_hasher hasher(wanted.state);
  // A fence ends it, since a generation must not wait for gigabytes.
  auto look = [this] {
    if (waiter_.is_fenced()) throw program::action_interrupted();
  };
  try {
    for (const auto& name : wanted.names) hasher.add(parameters.at(name), look);
  } catch (const program::action_interrupted&) {
    return;
  }
  self_->send(command_.scheduler,
              messages::parameters_hashed{generation_, wanted.call, wanted.num_hashed + wanted.names.size(),
                                          hasher.state()});
}

void device_state::send_memory() {
  options_.faults->at(fault::fault_point::gather, call_->index);
  program::device_memory held{options_.device, options_.rank, options_.account.statistics(),
                              program::memory_of_process()};
  send_gathered(static_cast<std::uint32_t>(options_.device), 0, to_tensor(held));
}

void device_state::on_prediction(const action& op, const tensor& output) {
  options_.faults->at(fault::fault_point::gather, call_->index);
  auto index = interpreter_->assignment().batch_of(step_) *
                   static_cast<std::uint64_t>(interpreter_->running().num_microbatches) +
               static_cast<std::uint64_t>(op.microbatch);
  send_gathered(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(op.stage), output.to({}));
}

void device_state::send_gathered(std::uint32_t index, std::uint32_t stage, const tensor& value) {
  transport::tensor_tag tag{generation_, 0, call_->index, stage, index, transport::tensor_role::gathered};
  for (int rank = 0; rank < command_.world_size; ++rank)
    if (call_->delivers_to(rank)) options_.out->send_tensor(rank, tag, value);
}

}  // namespace troupe::actors::devices
