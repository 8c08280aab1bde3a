#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "troupe/execution/plan_run.hpp"

namespace troupe::execution {

/// The Us and Ss of a device whose programs own some of a stage's weights (stage_parameters::weight_buckets):
/// in a U it sends its own to the other lanes, and takes theirs while it does other things. What reads the
/// weights of the stage waits for them: a forward for each, where host and program allow it, else the first
/// action for all.
///
/// A U does nothing where all lanes have the weights already, as in all steps of an evaluation but the first.
class weight_gathers {
 public:
  /// `run` outlives it.
  explicit weight_gathers(plan_run& run) : run_(run) {}

  /// Runs a U.
  void begin(const action& op);
  /// Sends what others wait for, and takes nothing: this lane does not run the step.
  void send_own(const action& op);
  /// The stage has stepped its own weights: the next U sends and takes them again.
  void mark_stale(int stage);
  /// False: the action reads weights that are still to come.
  bool may_run(const action& op);
  /// Takes what has come.
  void progress();

 private:
  struct gather {
    const action* op;
    std::uint64_t step;
    std::vector<std::pair<int, int>> missing = {};  ///< bucket, owner
    bool is_deferred = false;                       ///< forwards wait for what they read
  };

  bool is_gathered(int stage) const;
  transport::tensor_tag tag_of(const gather& one, int bucket, int owner, int to) const;
  bool take_arrived(gather& one);
  void progress_within(int stage, bool waits);

  plan_run& run_;
  std::map<int, gather> running_;  ///< by stage
  std::set<int> gathered_;         ///< stages whose weights all lanes have
  std::set<int> ever_gathered_;    ///< stages, ever
};

}  // namespace troupe::execution
