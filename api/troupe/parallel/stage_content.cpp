#include "troupe/parallel/stage_content.hpp"

namespace troupe {

replica_content content_of(const nn::Graph& model, const stage_range& stage,
                           const numeric_options& numerics) {
  bool holds_back = numerics.top_k_gradients > 0 || numerics.power_sgd_rank > 0;
  if (holds_back || numerics.average_every > 0) return replica_content::own;
  for (int index = stage.first; index < stage.last; ++index)
    if (!model[index]->named_buffers().empty()) return replica_content::own;
  return replica_content::equal;
}

std::vector<replica_content> contents_of(const nn::Graph& model, const std::vector<stage_range>& partition,
                                         const numeric_options& numerics) {
  std::vector<replica_content> contents;
  contents.reserve(partition.size());
  for (const auto& stage : partition) contents.push_back(content_of(model, stage, numerics));
  return contents;
}

}  // namespace troupe
