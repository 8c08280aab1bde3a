#include "troupe/parallel/comm_hook.hpp"

#include "troupe/ops/tree_reduction.hpp"

namespace troupe {

void sum_leaves(gradient_bucket& bucket) {
  std::vector<const std::byte*> inputs;
  for (const auto& leaf : bucket.leaves) inputs.push_back(leaf.bytes().data());
  std::byte* output = bucket.sum.bytes().data();
  tree_reduce(inputs, {&output, 1}, bucket.sum.num_elements(), dtype::f32, reduce_op::sum);
}

}  // namespace troupe
