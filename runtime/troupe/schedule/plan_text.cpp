#include "troupe/schedule/plan_text.hpp"

namespace troupe {

std::string plan_text(const plan& of) {
  auto text = std::string(to_string(of.kind)) + ", " + std::to_string(of.num_stages) + " stages, " +
              std::to_string(of.num_microbatches) + " microbatches\n";
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

}  // namespace troupe
