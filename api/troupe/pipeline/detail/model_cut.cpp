#include "troupe/pipeline/detail/model_cut.hpp"

#include <algorithm>
#include <map>

namespace troupe::detail {
namespace {

int stage_of(int node, const std::vector<stage_range>& partition) {
  // The samples come in with the first stage.
  if (node == nn::graph_inputs) return 0;
  auto found =
      std::ranges::find_if(partition, [node](const stage_range& range) { return node < range.last; });
  return static_cast<int>(found - partition.begin());
}

/// The uses of a value in other stages, by stage.
using uses_by_stage = std::map<int, std::vector<nn::graph_use>>;

std::map<nn::graph_source, uses_by_stage> uses_across(const nn::graph_wiring& wiring,
                                                      const std::vector<stage_range>& partition) {
  std::map<nn::graph_source, uses_by_stage> across;
  for (const auto& [source, uses] : uses_of(wiring))
    for (const auto& use : uses)
      if (auto user = stage_of(use.node, partition); user != stage_of(source.node, partition))
        across[source][user].push_back(use);
  return across;
}

/// Removes the uses of the model's input in stages that use nothing else from outside, and notes that these
/// take the samples.
void take_samples(std::map<nn::graph_source, uses_by_stage>& across, std::vector<stage_values>& stages) {
  constexpr nn::graph_source samples{nn::graph_inputs, 0};
  for (int stage = 0; auto& each : stages) {
    auto takes_other = std::ranges::any_of(
        across, [&](const auto& value) { return value.first != samples && value.second.contains(stage); });
    if (stage == 0 || (!takes_other && across.contains(samples) && across[samples].contains(stage))) {
      each.takes_samples = true;
      each.inputs = {{samples}};
      if (across.contains(samples)) across[samples].erase(stage);
    }
    ++stage;
  }
  std::erase_if(across, [](const auto& value) { return value.second.empty(); });
}

/// The input ports for a value in one stage: one for all uses, or one for each.
std::vector<nn::detail::given_value> ports_for(const nn::graph_source& source,
                                               const std::vector<nn::graph_use>& uses, bool is_last_user) {
  if (is_last_user || uses.size() == 1) return {{source}};
  std::vector<nn::detail::given_value> ports;
  for (const auto& use : uses) ports.push_back({source, {use}});
  return ports;
}

}  // namespace

model_cut cut_model(const nn::graph_wiring& wiring, const std::vector<stage_range>& partition) {
  model_cut cut;
  for (const auto& range : partition) cut.stages.push_back({.nodes = range});
  auto across = uses_across(wiring, partition);
  take_samples(across, cut.stages);
  auto at = [&cut](int stage) -> stage_values& { return cut.stages[static_cast<std::size_t>(stage)]; };
  for (const auto& [source, users] : across) {
    auto from = stage_of(source.node, partition);
    auto output = static_cast<int>(at(from).outputs.size());
    at(from).outputs.push_back(source);
    for (const auto& [to, uses] : users)
      for (auto& given : ports_for(source, uses, to == users.rbegin()->first)) {
        cut.edges.push_back({from, output, to, static_cast<int>(at(to).inputs.size())});
        at(to).inputs.push_back(std::move(given));
      }
  }
  cut.stages.back().outputs = wiring.outputs;
  std::ranges::sort(cut.edges);
  return cut;
}

}  // namespace troupe::detail
