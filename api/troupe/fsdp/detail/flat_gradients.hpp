#pragma once
#include <optional>

#include "troupe/collective/calls/leaf_accumulator.hpp"
#include "troupe/fsdp/detail/flat_parameters.hpp"
#include "troupe/fsdp/detail/sharding_groups.hpp"
#include "troupe/fsdp/detail/shared_blocks.hpp"
#include "troupe/gradients/replica_sum.hpp"

namespace troupe::detail {

/// The gradients of a unit's trained parameters: whole while a backward pass computes them, then of the own
/// part the sum over the virtual replicas of all members, in the fixed tree. Not thread-safe.
class flat_gradients {
 public:
  /// - `groups`: divided by the members of its first; the sums of its second's are added up, if there is one
  /// - `replicas`: those of the first group
  /// - `keeps_memory`: that of whole gradients stays from step to step
  ///
  /// Everything outlives this object.
  flat_gradients(flat_parameters& of, const sharding_groups& groups,
                 const collective::logical_rank_map& replicas, shared_blocks& blocks, bool keeps_memory);

  flat_parameters& of() { return of_; }
  /// Where replica `replica` of this member writes the gradient of parameter `index`.
  tensor gradient_of(std::size_t index, int replica);
  /// Replica `replica` has computed all gradients. The parameters let go of them.
  void add(int replica);
  /// All replicas of this member have: begins to sum those of all members.
  void begin_sum();
  /// Waits for the sum over the first group, lets go of the whole gradient, and begins that over the second.
  void go_on();
  /// Waits for the sum, which becomes the gradient of the pieces.
  void finish_sum();
  /// f32 [of().num_own()]
  const tensor& sum() const { return sum_; }

 private:
  const tensor& leaf(int replica);
  bool is_tree_of_members() const;

  flat_parameters& of_;
  const sharding_groups& groups_;
  const collective::logical_rank_map& replicas_;
  shared_blocks& blocks_;
  bool keeps_memory_;
  gradients::summed_here here_;
  tensor leaf_;   ///< [n], of the replica whose pass is under way
  tensor nodes_;  ///< [nodes, n], of a member with several replicas
  std::optional<collective::leaf_accumulator> nodes_sums_;
  tensor sum_;
  work call_;
  enum class phase : std::uint8_t { idle, over_shards, over_copies } phase_ = phase::idle;
};

}  // namespace troupe::detail
