#include "troupe/supervisor/state/supervision_tree.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors::supervisor {

std::string_view to_string(subtree which) { return which == subtree::io ? "io" : "compute"; }

/// A device that has several stages is in the branch of each, and the last one in all of them.
supervised_branch supervision_tree::branch_of(const child_id& child) const {
  for (const auto& branch : branches_)
    if (std::ranges::find(branch.children, child) != branch.children.end()) return branch;
  return {subtree::compute, recovery::restart_policy::one_for_one, {child}};
}

std::vector<child_id> supervision_tree::restarted_with(const child_id& child,
                                                       const supervised_branch& branch) {
  auto index = static_cast<int>(std::ranges::find(branch.children, child) - branch.children.begin());
  std::vector<child_id> children;
  for (auto each : children_to_restart(branch.policy, index, static_cast<int>(branch.children.size())))
    children.push_back(branch.children[static_cast<std::size_t>(each)]);
  return children;
}

restart_command supervision_tree::on_requested_restart(const child_id& ended) const {
  auto branch = branch_of(ended);
  auto action = branch.part_of == subtree::io ? restart_action::restart : restart_action::new_generation;
  return {action, restarted_with(ended, branch), {}, 0};
}

bool supervision_tree::would_fail_job(const child_id& child, time_point now) const {
  auto is_exhausted = [now](const recovery::restart_intensity& limits) {
    return limits.num_recent(now) >= limits.options().intensity;
  };
  bool escalates = branch_of(child).part_of == subtree::compute || is_exhausted(io_);
  return escalates && is_exhausted(compute_);
}

restart_command supervision_tree::on_failure(const child_id& failed, time_point now) {
  auto branch = branch_of(failed);
  auto children = restarted_with(failed, branch);
  if (branch.part_of == subtree::compute) return restart_compute(std::move(children), now);
  auto earlier = io_.num_recent(now);
  if (auto delay = io_.restart(now)) return {restart_action::restart, std::move(children), *delay, earlier};
  auto escalated = restart_compute(std::move(children), now);
  escalated.num_earlier += earlier;
  return escalated;
}

restart_command supervision_tree::on_generation_wanted(time_point now) { return restart_compute({}, now); }

restart_command supervision_tree::restart_compute(std::vector<child_id> children, time_point now) {
  auto earlier = compute_.num_recent(now);
  auto delay = compute_.restart(now);
  if (!delay) return {restart_action::fail_job, {}, {}, earlier};
  return {restart_action::new_generation, std::move(children), *delay, earlier};
}

}  // namespace troupe::actors::supervisor
