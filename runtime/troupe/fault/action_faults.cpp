#include "troupe/fault/action_faults.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "troupe/error/errors.hpp"

namespace troupe::fault {
namespace {

constexpr std::array action_points = {fault_point::forward, fault_point::backward, fault_point::weight,
                                      fault_point::reduce,  fault_point::apply,    fault_point::all_reduce,
                                      fault_point::unshard};

[[noreturn]] void refuse(fault_point point, const std::string& why) {
  throw bad_input("--fault " + std::string(to_string(point)) + " would never strike: " + why);
}

std::set<fault_point> points_of(const plan& training) {
  std::set<fault_point> points;
  for (const auto& device : training.devices)
    for (const auto& op : device)
      if (op.kind != action_kind::reshard) points.insert(fault_point_of(op.kind));
  return points;
}

}  // namespace

fault_point fault_point_of(action_kind kind) {
  switch (kind) {
    case action_kind::forward:
      return fault_point::forward;
    case action_kind::backward:
    case action_kind::input_gradient:
      return fault_point::backward;
    case action_kind::weight_gradient:
      return fault_point::weight;
    case action_kind::reduce_gradient:
      return fault_point::reduce;
    case action_kind::apply:
      return fault_point::apply;
    case action_kind::all_reduce:
      return fault_point::all_reduce;
    case action_kind::unshard:
      return fault_point::unshard;
    case action_kind::reshard:
      break;  // it only frees memory
  }
  throw_invalid("fault_point_of", "a kind of action that computes or communicates",
                std::to_string(static_cast<int>(kind)));
}

void check_faults(std::string_view text, const plan& training, int world_size) {
  if (text.empty()) return;
  auto in_plan = points_of(training);
  for (const auto& planned : faults_from(text)) {
    if (planned.rank >= static_cast<std::uint64_t>(world_size))
      refuse(planned.point, "expected a rank from 0 to " + std::to_string(world_size - 1) +
                                ", the job's processes, got " + std::to_string(planned.rank));
    if (std::ranges::count(action_points, planned.point) == 0 || in_plan.contains(planned.point)) continue;
    std::string has;
    for (auto point : in_plan) has += (has.empty() ? "" : ", ") + std::string(to_string(point));
    refuse(planned.point,
           "the plan of schedule " + std::string(to_string(training.kind)) +
               " has no such action. Use one of those it has (" + has +
               "), or a schedule that has it: `troupe schedule --list` shows a plan's actions");
  }
}

}  // namespace troupe::fault
