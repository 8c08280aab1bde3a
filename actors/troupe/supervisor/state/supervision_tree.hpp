#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/actor/child_id.hpp"
#include "troupe/recovery/restart_policy.hpp"

namespace troupe::actors::supervisor {

using actor::child_id;
using actor::child_role;

/// io: its children are restarted alone, and no other actor is disturbed. compute: its children are
/// restarted with a new generation, in which all processes restore their state.
enum class subtree : std::uint8_t { io, compute };
std::string_view to_string(subtree which);

/// Restart options of the subtrees; each counts its restarts for itself.
struct subtree_options {
  /// Beyond its intensity a failure costs a new generation, which counts as a restart of `compute`.
  recovery::restart_options io;
  /// Beyond its intensity a failure ends the job.
  recovery::restart_options compute;
};

/// Children in the order in which they are started, and which of them are restarted if one fails.
struct supervised_branch {
  subtree part_of = subtree::compute;
  recovery::restart_policy policy = recovery::restart_policy::one_for_one;
  std::vector<child_id> children;
};

enum class restart_action : std::uint8_t { restart, new_generation, fail_job };

/// What a failure costs.
struct restart_command {
  restart_action action = restart_action::restart;
  std::vector<child_id> children;  ///< to stop, last first, and to start again, first first
  std::chrono::steady_clock::duration delay{0};
  /// Earlier restarts within the period, which did not help: of the child's subtree; of both subtrees if a
  /// failure of io escalates.
  int num_earlier = 0;
  bool operator==(const restart_command&) const = default;
};

/// Decides what to restart when a child fails, from the branches and the restarts so far. Values and times
/// in; knows no actor.
///
///   subtree  branch                  policy
///   io       loader                  one_for_one
///   io       peer copy store         one_for_one
///   io       disk, snapshot writer   rest_for_one
///   compute  each stage, its device  rest_for_one
///   compute  any other child         one_for_one
class supervision_tree {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  explicit supervision_tree(const subtree_options& options) : io_(options.io), compute_(options.compute) {}

  /// Replaces the branches. Restarts so far still count.
  void set_branches(std::vector<supervised_branch> branches) { branches_ = std::move(branches); }
  /// A child has failed. The restart that is returned counts.
  restart_command on_failure(const child_id& failed, time_point now);
  /// A child was ended on purpose and is to start again at once. This does not count.
  restart_command on_requested_restart(const child_id& ended) const;
  /// Whether a failure of this child would end the job.
  bool would_fail_job(const child_id& child, time_point now) const;
  /// A new generation is needed although no child has failed. Counts as a restart of compute.
  restart_command on_generation_wanted(time_point now);

 private:
  supervised_branch branch_of(const child_id& child) const;
  static std::vector<child_id> restarted_with(const child_id& child, const supervised_branch& branch);
  restart_command restart_compute(std::vector<child_id> children, time_point now);

  recovery::restart_intensity io_, compute_;
  std::vector<supervised_branch> branches_;
};

}  // namespace troupe::actors::supervisor
