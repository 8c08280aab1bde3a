#include "troupe/execution/inbox/inbox.hpp"

#include <stdexcept>
#include <string>

namespace troupe::execution {

void inbox::put(const transport::tensor_tag& tag, tensor value) {
  if (tag.generation < generation_) {
    ++num_stale_;
    return;
  }
  if (held_.size() == max_held)
    throw std::logic_error("[inbox] expected at most " + std::to_string(max_held) +
                           " tensors that wait for their action, as many as a window of steps has");
  if (!held_.emplace(key_of(tag), std::move(value)).second)
    throw std::logic_error("[inbox] expected each tensor once, got a second one for stage " +
                           std::to_string(tag.stage) + ", microbatch " + std::to_string(tag.microbatch) +
                           ", step " + std::to_string(tag.step));
}

std::optional<tensor> inbox::take(const transport::tensor_tag& tag) {
  auto found = held_.find(key_of(tag));
  if (found == held_.end()) return {};
  auto value = std::move(found->second);
  held_.erase(found);
  return value;
}

void inbox::begin_generation(std::uint64_t generation) {
  generation_ = generation;
  auto first_kept =
      held_.lower_bound(key{generation, 0, 0, transport::tensor_role{}, layout::mesh_axis{}, 0, 0, 0, 0, 0});
  num_stale_ += static_cast<std::uint64_t>(std::distance(held_.begin(), first_kept));
  held_.erase(held_.begin(), first_kept);
}

void inbox::forget_before(std::uint32_t call, std::uint64_t step) {
  held_.erase(held_.begin(), held_.lower_bound(key{generation_, call, step, transport::tensor_role{},
                                                   layout::mesh_axis{}, 0, 0, 0, 0, 0}));
}

}  // namespace troupe::execution
