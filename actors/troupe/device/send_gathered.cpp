// device_state: sends weights and outputs to the processes whose programs receive them (gather, predict).
#include "troupe/device/device_actor.hpp"

namespace troupe {

void device_state::send_weights() {
  for (auto& attached : order_.stages) {
    auto stage = static_cast<std::uint32_t>(attached.stage);
    options_.faults->at(fault_point::gather, call_->index);
    send_gathered(stage, stage, pack_state(attached.program->weights(), pool_));
  }
}

void device_state::on_prediction(const action& op, const tensor& output) {
  options_.faults->at(fault_point::gather, call_->index);
  auto index = step_ * static_cast<std::uint64_t>(interpreter_->running().num_microbatches) +
               static_cast<std::uint64_t>(op.microbatch);
  send_gathered(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(op.stage), output.to({}));
}

void device_state::send_gathered(std::uint32_t index, std::uint32_t stage, const tensor& value) {
  tensor_tag tag{generation_, 0, call_->index, stage, index, tensor_role::gathered};
  for (int rank = 0; rank < order_.world_size; ++rank)
    if (call_->delivers_to(rank)) options_.out->send_tensor(rank, tag, value);
}

}  // namespace troupe
