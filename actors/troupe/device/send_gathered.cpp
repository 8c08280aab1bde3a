// device_state: sends weights, outputs and what it holds to the processes whose programs receive them
// (gather, predict, memory).
#include "troupe/device/device_actor.hpp"
#include "troupe/program/device_memory.hpp"

namespace troupe::actors::devices {

void device_state::send_weights() {
  if (!is_of_first_replica()) return;
  for (auto& attached : command_.stages) {
    auto stage = static_cast<std::uint32_t>(attached.stage);
    options_.faults->at(fault::fault_point::gather, call_->index);
    send_gathered(stage, stage, pack_state(attached.program->weights(), pool_));
  }
}

void device_state::send_memory() {
  options_.faults->at(fault::fault_point::gather, call_->index);
  program::device_memory held{options_.device, options_.rank, options_.account.statistics(),
                              program::memory_of_process()};
  send_gathered(static_cast<std::uint32_t>(options_.device), 0, to_tensor(held));
}

void device_state::on_prediction(const action& op, const tensor& output) {
  options_.faults->at(fault::fault_point::gather, call_->index);
  auto index = step_ * static_cast<std::uint64_t>(interpreter_->running().num_microbatches) +
               static_cast<std::uint64_t>(op.microbatch);
  send_gathered(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(op.stage), output.to({}));
}

void device_state::send_gathered(std::uint32_t index, std::uint32_t stage, const tensor& value) {
  transport::tensor_tag tag{generation_, 0, call_->index, stage, index, transport::tensor_role::gathered};
  for (int rank = 0; rank < command_.world_size; ++rank)
    if (call_->delivers_to(rank)) options_.out->send_tensor(rank, tag, value);
}

}  // namespace troupe::actors::devices
