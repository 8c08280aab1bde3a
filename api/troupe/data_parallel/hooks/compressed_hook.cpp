#include "troupe/data_parallel/hooks/compressed_hook.hpp"

#include <algorithm>
#include <utility>

#include "troupe/data_parallel/detail/dense_reduction.hpp"
#include "troupe/data_parallel/hooks/detail/compressed_reduction.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe {

void compressed_hook::prepare(const std::vector<gradient_bucket>& buckets) {
  memory_scope counted(memory_category::gradients);
  buckets_.clear();
  for (const auto& each : buckets) {
    detail::require_on_cpu(each, function_.c_str());
    auto num_compressors = std::max<std::size_t>(each.leaves.size(), 1);
    buckets_.push_back({segments_of(each, num_compressors), each.own_replicas});
  }
}

std::unique_ptr<bucket_reduction> compressed_hook::begin(gradient_bucket& bucket, communicator& group) {
  steps_.on_begin(bucket);
  const auto& segments = buckets_[static_cast<std::size_t>(bucket.index)].segments;
  if (steps_.begun() > dense_steps_)
    return std::make_unique<detail::compressed_reduction>(bucket, group, segments);
  for (std::size_t leaf = 0; leaf < bucket.leaves.size(); ++leaf)
    for (const auto& each : segments)
      each.of_replica(leaf).prepare_uncompressed(bucket.leaves[leaf].rows(each.first, each.count));
  return detail::all_reduce_dense(bucket, group);
}

std::vector<named_tensor> compressed_hook::state() {
  std::vector<named_tensor> result;
  if (!state_prefix_.empty()) result.push_back({state_prefix_ + ".steps", steps_.value()});
  for (const auto& bucket : buckets_)
    for (std::size_t leaf = 0; leaf < bucket.own_replicas.size(); ++leaf)
      for (const auto& segment : bucket.segments)
        for (auto& each : segment.of_replica(leaf).state())
          result.push_back({"replica." + std::to_string(bucket.own_replicas[leaf]) + "/" + each.name,
                            each.value.num_elements() == segment.count ? each.value.reshape(segment.extents)
                                                                       : each.value});
  for (const auto& bucket : buckets_)
    for (const auto& segment : bucket.segments)
      for (auto& each : segment.of_replica(0).shared_state()) result.push_back(std::move(each));
  return result;
}

}  // namespace troupe
