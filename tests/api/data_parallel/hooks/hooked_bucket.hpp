#pragma once
#include <algorithm>
#include <map>
#include <mutex>

#include "api/data_parallel/replicated_model.hpp"
#include "support/bits.hpp"
#include "troupe/gradients/replica_sum.hpp"

namespace troupe::testing {

/// A bucket of this member, as DataParallel makes them: its leaves are zero, the first is the sum.
/// num_replicas: of all members; 0: one each.
inline gradient_bucket bucket_of(communicator& group, const std::vector<std::pair<std::string, shape>>& parts,
                                 int num_replicas = 0) {
  gradient_bucket result;
  std::int64_t size = 0;
  for (const auto& [name, extents] : parts) {
    result.parts.push_back({name, extents, size});
    size += (extents.num_elements() + 15) / 16 * 16;
  }
  result.sum = group.allocate({size});
  result.replicas = std::make_shared<collective::logical_rank_map>(
      gradients::spread_replicas(num_replicas == 0 ? group.size() : num_replicas, group.size()));
  result.own_replicas = result.replicas->leaves_of(group.rank());
  for (std::size_t i = 0; i < result.own_replicas.size(); ++i)
    result.leaves.push_back(i == 0 ? result.sum : tensor::zeros({size}));
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
