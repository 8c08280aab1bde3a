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
/// Programs that keep whole weights lose nothing in an S, and a U does nothing where all lanes have the
/// weights already, as in all steps of an evaluation but the first. Others have them from a U to the next S,
/// which a step ends with.
class weight_gathers {
 public:
  /// `run` outlives it.
  explicit weight_gathers(plan_run& run) : run_(run) {}

  void begin_step() { num_begun_.clear(); }
  /// Runs a U.
  void begin(const action& op);
  /// Runs an S.
  void end(const action& op);
  /// Sends what others wait for in a step that this lane does not run.
  void send_only(const action& op);
  /// The stage has stepped its own weights: the next U sends and takes them again.
  void mark_stale(int stage);
  /// False: the action reads weights that are still to come, or frees what they come to.
  bool may_run(const action& op);
  /// Takes what has come.
  void progress();

 private:
  struct gather {
    const action* op;
    std::uint64_t step;
    int number;                                     ///< among the Us of the stage in the step
    std::vector<std::pair<int, int>> missing = {};  ///< bucket, owner
    bool is_deferred = false;                       ///< forwards wait for what they read
  };

  bool is_gathered(int stage) const;
  bool forward_follows(const action& op) const;
  void send_own(gather& one);
  transport::tensor_tag tag_of(const gather& one, int bucket, int owner, int to) const;
  bool take_arrived(gather& one);
  void progress_within(int stage, bool waits);

  plan_run& run_;
  std::map<int, gather> running_;  ///< by stage
  std::set<int> gathered_;         ///< stages whose weights all lanes have
  std::set<int> ever_gathered_;    ///< stages, ever
  std::map<int, int> num_begun_;   ///< [stage] Us of this step
};

}  // namespace troupe::execution
