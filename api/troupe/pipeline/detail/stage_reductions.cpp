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
    result.tied = static_cast<int>(result.stages.size());
    result.stages.emplace_back(share.begin(), share.end());
  }
  if (numerics.needs_norm()) {
    result.norms = static_cast<int>(result.stages.size());
    auto& all = result.stages.emplace_back(partition.size());
    std::iota(all.begin(), all.end(), 0);
  }
  return result;
}

}  // namespace troupe::detail
