#include "troupe/execution/replicas/replica_exchange.hpp"

#include <stdexcept>

namespace troupe::execution {

void replica_exchange::give(int bucket, const tensor& gradients) {
  auto index = static_cast<std::size_t>(bucket);
  if (is_given_.at(index)) return;
  bool is_known = is_floating(gradients.dtype()) || gradients.dtype() == dtype::i32;
  bool is_on_cpu = gradients.device().type == device::kind::cpu;
  if (!is_known || !is_on_cpu || gradients.shape().rank() != 1 || gradients.num_elements() == 0)
    throw std::logic_error(
        "[stage_program::bucket] expected f32, bf16, f16 or i32 [n] with n > 0 in CPU memory, got " +
        describe(gradients));
  is_given_[index] = true;
  begin(bucket, gradients);
}

std::vector<int> replica_exchange::not_given() const {
  std::vector<int> result;
  for (std::size_t bucket = 0; bucket < is_given_.size(); ++bucket)
    if (!is_given_[bucket]) result.push_back(static_cast<int>(bucket));
  return result;
}

}  // namespace troupe::execution
