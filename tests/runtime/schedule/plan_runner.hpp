#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::testing {

/// Says whether a plan is sound by running it: devices take turns, each doing its next action if what it
/// needs is there. Rules are those of a worker that is handed tensors, gradients and shares, not those of a
/// graph.
class plan_runner {
 public:
  explicit plan_runner(const plan& run) : run_(run), next_(run.devices.size(), 0) {}
  bool runs_soundly();

 private:
  using cell = std::pair<int, int>;  // stage and microbatch

  bool edges_are_sound() const;
  bool any_device_steps();
  bool is_allowed(const action& op, int device) const;
  bool inputs_are_there(const action& op) const;
  void perform(const action& op, std::size_t device);
  int next_weight_gradient(int stage, int number);
  void offer_share(int stage, std::size_t device);
  bool everything_done() const;
  bool is_training() const { return run_.kind != schedule_kind::forward_only; }
  int num_applied(int stage) const;
  bool has_version_for(int stage, int microbatch) const;
  bool has_all_weights(int stage) const;
  bool is_sharded(int stage) const;

  const plan& run_;
  std::vector<std::size_t> next_;                       // [device]
  std::set<std::pair<std::size_t, int>> tensors_;       // that were sent, by edge and microbatch
  std::set<std::pair<std::size_t, int>> sent_back_;     // gradients, by edge and microbatch
  std::set<cell> saved_;                                // by F
  std::set<cell> gradients_;                            // of inputs, computed
  std::map<int, int> forwards_, weights_;               // microbatches done, by stage
  std::set<std::pair<std::size_t, int>> shares_;        // that were given, by reduction and stage
  std::map<int, std::vector<std::size_t>> reductions_;  // done, by stage
  std::map<int, int> applied_;                          // how often, by stage
  std::set<int> whole_;                                 // stages behind a U, before an S
  std::optional<bool> descends_;                        // in which order weight gradients come
  bool broken_ = false;
};

}  // namespace troupe::testing
