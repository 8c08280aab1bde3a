#include "troupe/data_parallel/replica_buffers.hpp"

#include <algorithm>

namespace troupe {

replica_buffers::replica_buffers(nn::Module& model, int num_replicas)
    : buffers_(model.named_buffers()), values_(static_cast<std::size_t>(std::max(num_replicas, 1))) {
  for (auto& of_replica : values_)
    for (const auto& each : buffers_)
      of_replica.push_back(&of_replica == &values_.front() ? each.target->value : each.target->value.clone());
}

void replica_buffers::use(int replica) {
  const auto& values = values_.at(static_cast<std::size_t>(replica));
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].target->value = values[i];
}

void replica_buffers::broadcast(communicator& group) {
  std::vector<work> sent;
  for (const auto& each : values_.front())
    sent.push_back(group.broadcast(each, 0, {.progress = progress_by::waiter}));
  for (auto& each : sent) each.wait();
  for (auto of_replica = values_.begin() + 1; of_replica != values_.end(); ++of_replica)
    for (std::size_t i = 0; i < buffers_.size(); ++i) (*of_replica)[i].copy_from(values_.front()[i]);
}

std::vector<named_tensor> replica_buffers::state(const std::vector<int>& numbers) const {
  std::vector<named_tensor> result;
  for (std::size_t replica = 0; replica < numbers.size(); ++replica)
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      result.push_back(
          {"replica." + std::to_string(numbers[replica]) + "/" + buffers_[i].name, values_.at(replica)[i]});
  return result;
}

}  // namespace troupe
