#include "troupe/pipeline/detail/stage_content.hpp"

#include <cstddef>
#include <string>

#include "troupe/data_parallel/sync_batch_norm.hpp"

namespace troupe::detail {
namespace {

using statistics_of = nn::BatchNorm2d::statistics_of;

/// Whether a buffer of it depends on the samples of one replica. A BatchNorm2d has two, a class derived from
/// it may have more.
bool has_own_buffers(nn::Module& model) {
  const auto* norm = dynamic_cast<nn::BatchNorm2d*>(&model);
  int num_own = norm && norm->statistics() == statistics_of::replicas ? -2 : 0;
  model.each_buffer([&num_own](const nn::buffer&) { ++num_own; });
  bool result = num_own > 0;
  model.each_child(
      [&result](const std::string&, nn::Module& child) { result = result || has_own_buffers(child); });
  return result;
}

}  // namespace

layout::replica_content content_of(const nn::Graph& model, const stage_range& stage,
                                   const numeric_options& numerics) {
  bool holds_back = numerics.exchange.top_k_gradients > 0 || numerics.exchange.power_sgd_rank > 0;
  if (holds_back || numerics.exchange.average_every > 0) return layout::replica_content::own;
  for (int index = stage.first; index < stage.last; ++index)
    if (has_own_buffers(*model[index])) return layout::replica_content::own;
  return layout::replica_content::equal;
}

bool has_equal_replicas(const nn::Graph& model, const numeric_options& numerics) {
  if (numerics.exchange.average_every > 0) return false;
  for (int index = 0; index < model.size(); ++index)
    if (has_own_buffers(*model[index])) return false;
  return true;
}

std::vector<int> synchronized_stages_of(const nn::Graph& model, const std::vector<stage_range>& partition) {
  std::vector<int> synchronized;
  for (std::size_t stage = 0; stage < partition.size(); ++stage)
    for (int index = partition[stage].first; index < partition[stage].last; ++index)
      if (has_statistics_of(*model[index], statistics_of::replicas)) {
        synchronized.push_back(static_cast<int>(stage));
        break;
      }
  return synchronized;
}

std::vector<layout::replica_content> contents_of(const nn::Graph& model,
                                                 const std::vector<stage_range>& partition,
                                                 const numeric_options& numerics) {
  std::vector<layout::replica_content> contents;
  contents.reserve(partition.size());
  for (const auto& stage : partition) contents.push_back(content_of(model, stage, numerics));
  return contents;
}

}  // namespace troupe::detail
