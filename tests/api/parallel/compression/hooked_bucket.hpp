#pragma once
#include <algorithm>
#include <map>
#include <mutex>

#include "api/parallel/replicated_model.hpp"
#include "support/bits.hpp"

namespace troupe::testing {

/// A bucket of this member, as DataParallel makes them: `num_leaves` zero leaves, the first of which is the
/// sum.
inline gradient_bucket bucket_of(communicator& group, const std::vector<std::pair<std::string, shape>>& parts,
                                 int num_leaves = 1) {
  gradient_bucket result;
  std::int64_t size = 0;
  for (const auto& [name, extents] : parts) {
    result.parts.push_back({name, extents, size});
    size += (extents.num_elements() + 15) / 16 * 16;
  }
  result.sum = group.allocate({size});
  result.leaves = {result.sum};
  while (static_cast<int>(result.leaves.size()) < num_leaves) result.leaves.push_back(tensor::zeros({size}));
  result.first_replica = group.rank() * num_leaves;
  result.num_replicas = group.size() * num_leaves;
  return result;
}

inline void set(tensor target, const std::vector<float>& values) {
  std::ranges::copy(values, target.values<float>().begin());
}

inline std::vector<float> numbers(const tensor& value) {
  auto values = value.values<float>();
  return {values.begin(), values.end()};
}

inline void reduce(comm_hook& hook, gradient_bucket& bucket, communicator& group) {
  auto reduction = hook.begin(bucket, group);
  while (reduction->proceed()) {
  }
}

inline tensor find(const std::vector<named_tensor>& in, const std::string& name) {
  for (const auto& each : in)
    if (each.name == name) return each.value;
  throw std::out_of_range("no tensor is named " + name);
}

}  // namespace troupe::testing
