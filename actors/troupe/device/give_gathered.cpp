// The part of device_state that gives tensors to the programs of the processes that ask for them.
#include "troupe/device/device_actor.hpp"

namespace troupe {

void device_state::give_weights() {
  for (auto& attached : order_.stages) {
    auto stage = static_cast<std::uint32_t>(attached.stage);
    options_.faults->at(fault_point::gather, call_->index);
    give(stage, stage, pack_state(attached.program->weights(), pool_));
  }
}

void device_state::give_output(const action& what, const tensor& output) {
  options_.faults->at(fault_point::gather, call_->index);
  auto place = step_ * static_cast<std::uint64_t>(running_plan_.num_microbatches) +
               static_cast<std::uint64_t>(what.microbatch);
  give(static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(what.stage), output.to({}));
}

void device_state::give(std::uint32_t place, std::uint32_t stage, const tensor& value) {
  tensor_tag tag{generation_, 0, call_->index, stage, place, tensor_role::gathered};
  for (int rank = 0; rank < order_.world_size; ++rank)
    if (call_->gives_to(rank)) options_.out->send_tensor(rank, tag, value);
}

}  // namespace troupe
