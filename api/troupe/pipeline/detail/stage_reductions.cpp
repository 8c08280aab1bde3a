#include "troupe/pipeline/detail/stage_reductions.hpp"

#include <numeric>
#include <set>

#include "troupe/pipeline/detail/tied_weights.hpp"

namespace troupe::detail {

stage_reductions reductions_of(const nn::Graph& model, const std::vector<stage_range>& partition,
                               const numeric_options& numerics) {
  stage_reductions result;
  std::set<int> share;
  for (const auto& weight : tied_weights_of(model))
    if (auto stages = stages_of(weight, partition); stages.size() > 1 && weight.requires_gradient)
      share.insert(stages.begin(), stages.end());
  if (!share.empty()) {
    result.tied = static_cast<int>(result.all.size());
    result.all.emplace_back(std::vector<int>(share.begin(), share.end()), true);
  }
  if (numerics.needs_norm()) {
    result.norms = static_cast<int>(result.all.size());
    auto& norms = result.all.emplace_back();
    if (numerics.shard != shard_strategy::none) norms.axes = {layout::mesh_axis::dp};
    auto& stages = norms.stages;
    stages.resize(partition.size());
    std::iota(stages.begin(), stages.end(), 0);
  }
  return result;
}

}  // namespace troupe::detail
