#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "troupe/execution/plan_run.hpp"
#include "troupe/execution/replicas/replica_exchange.hpp"
#include "troupe/tensor/async/async_host_copy.hpp"

namespace troupe::execution {

/// A G from its first bucket to its end: adds up a stage's gradients over the replicas, or what slices have
/// in common over the slices (replica_exchange). If the replicas share the step's metrics, these are one
/// bucket more of the last G of the stage that computes the loss.
class running_all_reduce {
 public:
  /// Of the current step. `run` and `op`, an action of it, outlive it.
  running_all_reduce(plan_run& run, const action& op);

  const action& op() const { return op_; }
  std::uint64_t step() const { return step_; }
  plan_position position() const;

  /// Gives a bucket that is complete.
  void give_bucket(int bucket);
  /// Adds up what the others have given meanwhile, so that it travels while this replica computes. Sums are
  /// taken later: a weight is still used by the backward that computes its gradient.
  void add_up();
  /// Gives all buckets that are there and were not given.
  void give_buckets();
  /// Buckets of a GPU leave when they are copied: waits for these copies.
  void finish_copies() { give_copied(true); }
  /// Whether go_on would do anything.
  bool can_go_on() const { return exchange_->can_go_on(); }
  /// Adds up and takes whatever is there, and gives buckets that depend on it.
  void go_on();
  bool is_done() const { return exchange_->is_done(); }

 private:
  bool is_over_replicas() const { return op_.axis == layout::mesh_axis::dp; }
  bool has_metrics() const;
  tensor value_of(int bucket);
  void give_copied(bool waits);
  std::optional<int> owner_of(int bucket);
  void take_bucket(int bucket, const std::vector<tensor>& sums);
  std::unique_ptr<replica_exchange> make_exchange();

  plan_run& run_;
  const action& op_;
  std::uint64_t step_;
  int num_buckets_;
  std::unique_ptr<replica_exchange> exchange_;
  struct copied_bucket {
    int number;
    async_host_copy value;
  };
  std::deque<copied_bucket> coming_;  ///< in the order in which they are computed
};

}  // namespace troupe::execution
