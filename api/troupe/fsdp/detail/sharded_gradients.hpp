#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "troupe/fsdp/detail/call_order.hpp"
#include "troupe/fsdp/detail/flat_gradients.hpp"

namespace troupe::detail {

/// Whole gradients of units at a time: of the one that is computed, and of those whose sums are on their way.
constexpr int most_whole_gradients = 3;

/// Sums the gradients of a model's units over all virtual replicas, unit by unit as a backward pass completes
/// them, so that each member gets those of its own parts. Not thread-safe.
class sharded_gradients {
 public:
  /// `flats`: of trained parameters, in the order of the forward pass. Everything outlives this object.
  sharded_gradients(const std::vector<flat_parameters*>& flats, const sharding_groups& groups,
                    const collective::logical_rank_map& replicas, shared_blocks& blocks, call_order& order,
                    bool keeps_memory, bool finds_unused);
  ~sharded_gradients();
  sharded_gradients(const sharded_gradients&) = delete;
  sharded_gradients& operator=(const sharded_gradients&) = delete;

  /// The index, within this member, of the replica that runs.
  int local_replica() const { return local_replica_; }
  /// Discards gradients of the step before, even if no optimizer has used them.
  void begin_step();
  /// The current replica's gradient of a parameter is complete.
  void on_gradient(parameter& param);
  /// Ends the current replica's passes. Returns true if it was this member's last of the step: the sums are
  /// then on their way. Throws std::logic_error, after aborting the group, if a parameter has no gradient.
  bool end_replica();
  /// Whether the pieces' gradients are, or will be, the sums of the latest step, and are not used yet.
  bool has_sums() const { return has_sums_; }
  void forget_sums() { has_sums_ = false; }

  std::size_t num_flats() const { return all_.size(); }
  /// Waits for the sums of a flat; has_gradient of its pieces is then that of the parameters.
  void finish(std::size_t flat);
  void finish();
  /// The indices of flats in the order in which their sums come.
  const std::vector<std::size_t>& order() const { return order_; }
  flat_parameters& flat(std::size_t index) { return all_[index]->of(); }
  /// Of the sums that this member has.
  std::size_t own_bytes() const;
  /// No parameter has a gradient any more.
  void drop();

 private:
  struct place {
    std::size_t flat = 0, index = 0;
  };

  void complete(std::size_t flat);
  void require_gradients();
  void mark_unused();
  void all_reduce_used();
  int num_own() const { return static_cast<int>(replicas_.leaves_of(groups_.shards->rank()).size()); }

  const sharding_groups& groups_;
  const collective::logical_rank_map& replicas_;
  call_order& calls_;
  bool finds_unused_;
  std::vector<std::unique_ptr<flat_gradients>> all_;
  std::unordered_map<const parameter*, place> places_;
  // The current step.
  int local_replica_ = 0;
  bool has_sums_ = false;
  std::vector<std::size_t> order_;
  std::unordered_set<const parameter*> used_;
  // The current replica.
  std::unordered_set<const parameter*> complete_;
  std::vector<std::size_t> num_missing_;  ///< by flat
};

}  // namespace troupe::detail
