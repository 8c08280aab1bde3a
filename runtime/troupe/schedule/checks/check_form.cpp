#include "troupe/schedule/checks/plan_checks.hpp"

#include <algorithm>
#include <functional>

#include "troupe/error/errors.hpp"

namespace troupe::schedule {
namespace {

using findings = std::vector<std::string>;

std::string listed(const std::vector<int>& stages) {
  std::string text;
  for (int stage : stages) text += (text.empty() ? "" : ", ") + std::to_string(stage);
  return text.empty() ? "no stages" : "stages " + text;
}

void check_edges(const plan& checked, findings& found) {
  try {
    stage_graph(checked.num_stages, checked.edges);
  } catch (const bad_input& problem) {
    found.emplace_back(problem.what());
  }
  auto behind = std::ranges::is_sorted_until(checked.edges);
  if (behind != checked.edges.end())
    found.push_back("edge " + to_string(*behind) + " comes after " + to_string(*(behind - 1)) +
                    ", but a plan's edges ascend by sender, output, receiver and input");
}

void check_members(const plan& checked, findings& found) {
  auto of_one = checked.flush_every < 1 ? 0 : static_cast<std::size_t>(checked.reductions_per_step());
  for (std::size_t number = 0; number < checked.reductions.size(); ++number) {
    const auto& [stages, before_sums, axes] = checked.reductions[number];
    bool is_ascending = std::ranges::adjacent_find(stages, std::greater_equal()) == stages.end();
    if (stages.empty() || !is_ascending || stages.front() < 0 || stages.back() >= checked.num_stages)
      found.push_back("reduction " + std::to_string(number) + " is among " + listed(stages) +
                      ". Its members are at least one of the stages " + number_range(checked.num_stages) +
                      ", in ascending order");
    if (std::ranges::adjacent_find(axes, std::greater_equal()) != axes.end())
      found.push_back("reduction " + std::to_string(number) +
                      " is along axes that are not in ascending order, each once");
    bool is_first = of_one == 0 || number % of_one == 0;
    if (before_sums && !is_first && !checked.reductions[number - 1].before_sums)
      found.push_back("reduction " + std::to_string(number) +
                      " comes before the sums over replicas, but the one before it does not");
  }
  if (checked.kind == schedule_kind::forward_only && !checked.reductions.empty())
    found.emplace_back("the plan has reductions of gradients, but forwards only");
}

void check_joint(const plan& checked, findings& found) {
  if (std::ranges::adjacent_find(checked.joint, std::greater_equal()) != checked.joint.end())
    found.emplace_back(
        "the actions that lanes run together are not in ascending order of stage, kind and axis");
  for (const auto& each : checked.joint) {
    bool is_known = each.stage >= 0 && each.stage < checked.num_stages && is_of_microbatch(each.kind);
    if (!is_known)
      found.push_back("lanes run actions of stage " + std::to_string(each.stage) +
                      " together. They are F, B, I and W of the stages " + number_range(checked.num_stages));
    auto name = is_known ? to_string(action{each.stage, each.kind, 0}) : "actions";
    if (checked.mesh.size_of(each.axis) < 2)
      found.push_back("lanes along " + std::string(layout::to_string(each.axis)) + " run " + name +
                      " together, but there is one lane");
    else if (checked.kind == schedule_kind::forward_only && each.axis == layout::mesh_axis::dp)
      found.push_back("replicas run " + name + " together, but each runs another batch");
  }
}

/// One optimizer step as the other. There may be several only where a kind says so, or a file.
void check_flush(const plan& checked, findings& found) {
  auto count = checked.flush_every;
  auto steps = std::to_string(count) + " optimizer steps";
  bool has_several = checked.kind == schedule_kind::pipedream_2bw || checked.kind == schedule_kind::custom;
  if (count < 1 || (count > 1 && !has_several)) {
    found.push_back("the plan has " + steps + ", but those of kind " + std::string(to_string(checked.kind)) +
                    (has_several ? " at least 1" : " have 1"));
    return;
  }
  if (checked.num_microbatches % count != 0)
    found.push_back("the plan has " + std::to_string(checked.num_microbatches) + " microbatches for " +
                    steps + ", which have equally many");
  const auto& reductions = checked.reductions;
  auto of_one = reductions.size() / static_cast<std::size_t>(count);
  bool are_alike = of_one * static_cast<std::size_t>(count) == reductions.size();
  for (auto i = of_one; are_alike && i < reductions.size(); ++i)
    are_alike = reductions[i] == reductions[i - of_one];
  if (!are_alike)
    found.push_back("the plan has " + std::to_string(reductions.size()) + " reductions for " + steps +
                    ", which have the same ones");
}

}  // namespace

std::string number_range(int count) { return count == 1 ? "only 0" : "0 to " + std::to_string(count - 1); }

std::vector<std::string> check_form(const plan& checked) {
  findings found;
  if (checked.num_stages < 1)
    found.push_back("the plan has " + std::to_string(checked.num_stages) + " stages");
  if (checked.num_microbatches < 1)
    found.push_back("the plan has " + std::to_string(checked.num_microbatches) + " microbatches");
  if (checked.mesh.num_replicas < 1)
    found.push_back("the plan has " + std::to_string(checked.mesh.num_replicas) + " replicas");
  if (checked.mesh.num_slices < 1)
    found.push_back("the plan has " + std::to_string(checked.mesh.num_slices) + " slices");
  check_flush(checked, found);
  auto placed = static_cast<int>(checked.device_of_stage.size());
  if (placed != checked.num_stages)
    found.push_back("the plan has " + std::to_string(checked.num_stages) + " stages, but says for " +
                    std::to_string(placed) + " on which device they are");
  for (int stage = 0; stage < placed; ++stage) {
    int device = checked.device_of_stage[static_cast<std::size_t>(stage)];
    if (device < 0 || device >= checked.num_devices())
      found.push_back("stage " + std::to_string(stage) + " is on device " + std::to_string(device) +
                      ", but the plan has devices " + number_range(checked.num_devices()));
  }
  if (checked.num_stages >= 1) {
    check_edges(checked, found);
    check_members(checked, found);
    check_joint(checked, found);
  }
  return found;
}

}  // namespace troupe::schedule
