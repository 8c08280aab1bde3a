#include "troupe/parallel/replica_mean.hpp"

#include <bit>

#include "troupe/error/errors.hpp"
#include "troupe/ops/elementwise.hpp"

namespace troupe {

void require_whole_block(int count, const communicator& group, const char* function) {
  bool fits = count >= 1 && (group.size() == 1 || std::has_single_bit(static_cast<unsigned>(count)));
  if (!fits)
    throw_invalid(function, "a power of two as the number of virtual replicas of each member",
                  std::to_string(count));
}

tensor mean_over_replicas(const std::vector<tensor>& of_replicas, communicator& group) {
  require_whole_block(static_cast<int>(of_replicas.size()), group, "mean_over_replicas");
  std::vector<tensor> here;
  std::vector<const std::byte*> inputs;
  for (const auto& each : of_replicas) {
    if (each.dtype() != dtype::f32 || !each.defined() || each.shape() != of_replicas.front().shape())
      throw_invalid("mean_over_replicas", "f32 tensors of one shape, " + describe(of_replicas.front()),
                    describe(each));
    here.push_back(each.to(device{}));
    inputs.push_back(here.back().bytes().data());
  }
  auto sum = tensor::empty(of_replicas.front().shape());
  std::byte* output = sum.bytes().data();
  tree_reduce(inputs, {&output, 1}, sum.num_elements(), dtype::f32, reduce_op::sum);
  sum = sum.to(group.device());
  group.all_reduce(sum, reduce_op::sum, {.progress = progress_by::waiter}).wait();
  auto num_replicas = static_cast<float>(of_replicas.size()) * static_cast<float>(group.size());
  return divide(sum.to(device{}), tensor::full({}, num_replicas));
}

}  // namespace troupe
