#include "troupe/schedule/text/plan_text.hpp"

#include <cstdint>

namespace troupe::schedule {
namespace {

bool is_chain(const plan& shown) {
  auto num_edges = static_cast<std::int64_t>(shown.edges.size());
  return num_edges + 1 == shown.num_stages && shown.edges == chain_edges(shown.num_stages);
}

}  // namespace

std::string plan_text(const plan& shown) {
  auto text =
      std::string(to_string(shown.kind)) + ", " + std::to_string(shown.num_stages) + " stages, " +
      std::to_string(shown.num_microbatches) + " microbatches" +
      (shown.flush_every == 1 ? "" : ", " + std::to_string(shown.flush_every) + " optimizer steps") +
      (shown.mesh.num_replicas == 1 ? "" : ", " + std::to_string(shown.mesh.num_replicas) + " replicas") +
      (averages_weights(shown) ? ", which average their weights" : "") +
      (shown.mesh.num_slices == 1 ? "" : ", " + std::to_string(shown.mesh.num_slices) + " slices") + "\n";
  if (!is_chain(shown)) {
    text += "edges";
    for (const auto& each : shown.edges) text += " " + to_string(each) + ",";
    text += "\n";
  }
  if (!shown.joint.empty()) {
    text += "together";
    for (const auto& each : shown.joint) text += " " + to_string(each);
    text += "\n";
  }
  for (auto device : shown.device_of_stage) text += std::to_string(device) + " ";
  for (const auto& actions : shown.devices) {
    text += "\n";
    for (const auto& each : actions) text += to_string(each) + " ";
  }
  for (const auto& each : shown.reductions) text += "\nR " + to_string(each);
  return text;
}

}  // namespace troupe::schedule
