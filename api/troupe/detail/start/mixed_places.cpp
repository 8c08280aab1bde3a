#include "troupe/detail/start/mixed_places.hpp"

#include <algorithm>
#include <cstddef>

#include "troupe/error/errors.hpp"
#include "troupe/pipeline/detail/tied_weights.hpp"

namespace troupe::detail {
namespace {

std::string name_of(device::kind kind) { return kind == device::kind::cpu ? "cpu" : "cuda"; }

device::kind place_kind_of(const mesh::placement& placed, const layout::cell& which) {
  return placed.devices().at(static_cast<std::size_t>(placed.device_of(which).number)).place;
}

[[noreturn]] void refuse_places(const std::string& what) {
  throw bad_input(
      "--device: " + what +
      " must have the same bits, but some of their devices are CPUs and others GPUs: give them devices "
      "of one kind");
}

}  // namespace

void check_places(const nn::Graph& model, const std::vector<stage_range>& partition,
                  const mesh::placement& placed) {
  for (const auto& [which, device] : placed.device_of_cell())
    if (place_kind_of(placed, which) != place_kind_of(placed, {.stage = which.stage}))
      refuse_places("the replicas of stage " + std::to_string(which.stage));
  for (const auto& weight : tied_weights_of(model)) {
    auto stages = stages_of(weight, partition);
    for (int stage : stages)
      if (place_kind_of(placed, {.stage = stage}) != place_kind_of(placed, {.stage = stages.front()}))
        refuse_places("stages " + std::to_string(stages.front()) + " and " + std::to_string(stage) +
                      ", which share " + weight.name + ",");
  }
}

std::string text_of_places(const std::vector<stage_range>& partition, const mesh::placement& placed) {
  auto kind_at = [&](std::size_t stage) { return place_kind_of(placed, {.stage = static_cast<int>(stage)}); };
  std::string text;
  bool is_mixed = false;
  for (std::size_t stage = 0; stage < partition.size();) {
    auto end = stage + 1;
    while (end < partition.size() && kind_at(end) == kind_at(stage)) ++end;
    is_mixed |= end < partition.size();
    text += (text.empty() ? "" : ", ") + std::to_string(partition[stage].first) + " to " +
            std::to_string(partition[end - 1].last - 1) + " " + name_of(kind_at(stage));
    stage = end;
  }
  return is_mixed ? text : "";
}

}  // namespace troupe::detail
