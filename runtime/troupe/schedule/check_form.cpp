#include "troupe/schedule/check_form.hpp"

#include <algorithm>
#include <functional>

#include "troupe/error/errors.hpp"

namespace troupe {
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
  for (std::size_t number = 0; number < checked.reductions.size(); ++number) {
    const auto& stages = checked.reductions[number];
    bool is_ascending = std::ranges::adjacent_find(stages, std::greater_equal()) == stages.end();
    if (stages.empty() || !is_ascending || stages.front() < 0 || stages.back() >= checked.num_stages)
      found.push_back("reduction " + std::to_string(number) + " is among " + listed(stages) +
                      ". Its members are at least one of the stages " + number_range(checked.num_stages) +
                      ", in ascending order");
  }
  if (checked.kind == schedule_kind::forward_only && !checked.reductions.empty())
    found.emplace_back("the plan has reductions of gradients, but forwards only");
}

}  // namespace

std::string number_range(int count) { return count == 1 ? "only 0" : "0 to " + std::to_string(count - 1); }

std::vector<std::string> check_form(const plan& checked) {
  findings found;
  if (checked.num_stages < 1)
    found.push_back("the plan has " + std::to_string(checked.num_stages) + " stages");
  if (checked.num_microbatches < 1)
    found.push_back("the plan has " + std::to_string(checked.num_microbatches) + " microbatches");
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
  }
  return found;
}

}  // namespace troupe
