#include "troupe/schedule/plan.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>
#include <vector>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/schedule_table.hpp"
#include "troupe/usage/nearest.hpp"

namespace troupe {
namespace {

/// "zb_h1" of "ZB-H1", as papers and drawings write it.
std::string in_small_letters(std::string_view name) {
  std::string text(name);
  for (auto& letter : text)
    letter = letter == '-' || letter == ' '
                 ? '_'
                 : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

}  // namespace

schedule_kind schedule_kind_from(std::string_view name) {
  if (name == "one_f_one_b") return schedule_kind::one_f_one_b;
  std::string list;
  std::vector<std::string> known;
  for (const auto& row : schedule::schedule_table()) {
    if (row.name == name) return row.kind;
    known.emplace_back(row.name);
    list += (list.empty() ? "" : ", ") + known.back();
  }
  auto meant = usage::nearest_to(in_small_letters(name), known);
  throw bad_input("unknown schedule '" + std::string(name) + "'" +
                  (meant.empty() ? "" : "; did you mean '" + meant + "'?") + (meant.empty() ? ". " : " ") +
                  "Choose one of " + list);
}

std::string_view to_string(schedule_kind kind) {
  return kind == schedule_kind::custom ? "custom" : schedule::schedule_of(kind).name;
}

namespace schedule {

std::string to_string(const reduction& shown) {
  std::string text;
  for (auto stage : shown.stages) text += (text.empty() ? "" : " ") + std::to_string(stage);
  if (shown.before_sums) text += ", before sums over replicas";
  for (auto axis : shown.axes) text += ", along " + std::string(layout::to_string(axis));
  return text;
}

std::string to_string(const joint_kind& shown) {
  return std::to_string(shown.stage) + letter_of(shown.kind) + " along " +
         std::string(layout::to_string(shown.axis));
}

std::vector<joint_kind> joint_passes(const std::vector<int>& stages, layout::mesh_axis axis) {
  std::vector<joint_kind> passes;
  for (int stage : stages)
    for (auto kind : {action_kind::forward, action_kind::backward, action_kind::input_gradient})
      passes.push_back({stage, kind, axis});
  return passes;
}

std::vector<joint_kind> joint_in(schedule_kind kind, const layout::mesh_shape& mesh,
                                 std::vector<joint_kind> joint) {
  std::erase_if(joint, [&](const joint_kind& each) {
    bool is_left_out = kind == schedule_kind::forward_only &&
                       (each.axis == layout::mesh_axis::dp || each.kind != action_kind::forward);
    return is_left_out || mesh.size_of(each.axis) == 1;
  });
  return joint;
}

bool shards_parameters(const plan& training) {
  return std::ranges::any_of(training.devices, [](const std::vector<action>& device) {
    return std::ranges::any_of(device, [](const action& op) { return is_of_storage(op.kind); });
  });
}

std::string_view to_string(reshard_point point) { return point == reshard_point::pass ? "pass" : "step"; }

reshard_point reshard_point_from(std::string_view name) {
  for (auto known : {reshard_point::pass, reshard_point::step})
    if (name == to_string(known)) return known;
  throw bad_input("--reshard-after must be one of pass, step, got '" + std::string(name) + "'");
}

bool frees_parameters(const plan& training) {
  return std::ranges::any_of(training.devices, [](const std::vector<action>& device) {
    return std::ranges::count(device, action_kind::reshard, &action::kind) > 0;
  });
}

bool averages_weights(const plan& training) {
  for (const auto& device : training.devices) {
    std::set<std::pair<int, int>> applied;  // [stage, step]
    for (const auto& op : device) {
      if (op.kind == action_kind::apply) applied.insert({op.stage, op.microbatch});
      bool is_sum = op.kind == action_kind::all_reduce && op.axis == layout::mesh_axis::dp;
      if (is_sum && applied.contains({op.stage, op.microbatch})) return true;
    }
  }
  return false;
}

}  // namespace schedule

std::vector<layout::mesh_axis> plan::joint_axes(const action& op) const {
  std::vector<layout::mesh_axis> axes;
  for (const auto& each : joint)
    if (each.stage == op.stage && each.kind == op.kind) axes.push_back(each.axis);
  return axes;
}

std::vector<int> plan::lanes_together(const action& op, int lane) const {
  if (op.kind == action_kind::all_reduce) return mesh.lanes_along({op.axis}, lane);
  if (op.kind == action_kind::reduce_gradient)
    return mesh.lanes_along(reductions[static_cast<std::size_t>(op.microbatch)].axes, lane);
  return mesh.lanes_along(joint_axes(op), lane);
}

const std::vector<action>& plan::actions_of(int job_device) const {
  static const std::vector<action> nothing;
  if (lane_of(job_device) >= num_running_lanes()) return nothing;
  return devices[static_cast<std::size_t>(device_of(job_device))];
}

}  // namespace troupe
