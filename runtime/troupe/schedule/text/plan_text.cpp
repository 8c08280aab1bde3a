#include "troupe/schedule/text/plan_text.hpp"

#include <cstdint>

namespace troupe::schedule {
namespace {

bool is_chain(const plan& of) {
  auto num_edges = static_cast<std::int64_t>(of.edges.size());
  return num_edges + 1 == of.num_stages && of.edges == chain_edges(of.num_stages);
}

}  // namespace

std::string plan_text(const plan& of) {
  auto text = std::string(to_string(of.kind)) + ", " + std::to_string(of.num_stages) + " stages, " +
              std::to_string(of.num_microbatches) + " microbatches" +
              (of.flush_every == 1 ? "" : ", " + std::to_string(of.flush_every) + " optimizer steps") +
              (of.num_replicas == 1 ? "" : ", " + std::to_string(of.num_replicas) + " replicas") +
              (of.averages_weights ? ", which average their weights" : "") + "\n";
  if (!is_chain(of)) {
    text += "edges";
    for (const auto& each : of.edges) text += " " + to_string(each) + ",";
    text += "\n";
  }
  if (!of.synchronized_stages.empty()) {
    text += "all replicas together";
    for (auto stage : of.synchronized_stages) text += " " + std::to_string(stage);
    text += "\n";
  }
  for (auto device : of.device_of_stage) text += std::to_string(device) + " ";
  for (const auto& actions : of.devices) {
    text += "\n";
    for (const auto& each : actions) text += to_string(each) + " ";
  }
  for (const auto& stages : of.reductions) {
    text += "\nR ";
    for (auto stage : stages) text += std::to_string(stage) + " ";
  }
  return text;
}

}  // namespace troupe::schedule
