#pragma once
#include <vector>

#include "troupe/collective/calls/leaf_accumulator.hpp"
#include "troupe/data_parallel/bucket_plan.hpp"
#include "troupe/gradients/replica_sum.hpp"

namespace troupe {

/// The memory of one gradient bucket, and its sum over the virtual replicas of all members. Replicas write
/// their leaf one after the other, and sums of the fixed tree (troupe/ops/tree_reduction.hpp) are added as
/// soon as both are complete: by leaf_accumulator, unless a hook needs all leaves.
class reduced_bucket {
 public:
  enum class leaf_storage { partial_sums, all_leaves };

  /// Allocates the sum in memory of `group`. Throws std::invalid_argument if it is on another device than a
  /// parameter. `replicas` and the group must outlive this object.
  reduced_bucket(const planned_bucket& planned, const std::vector<named_parameter>& parameters,
                 const collective::logical_rank_map& replicas, communicator& group);

  /// Sets from the next step on whether all leaves are kept, or only the partial sums.
  void set_leaf_storage(leaf_storage storage);

  const std::vector<bucket_part>& parts() const { return parts_; }
  const std::vector<parameter*>& parameters() const { return parameters_; }
  /// f32 [n]
  const tensor& sum() const { return sum_; }
  /// The tensor in which replica `index` of this member writes its gradients: f32 [n]; of a member without
  /// replicas, sum().
  tensor leaf(int index) const;
  /// A view of the gradient of parameter `position` in `leaf`, with its shape.
  tensor part_of(const tensor& leaf, std::size_t position) const;
  /// Called when the leaf of replica `index` is complete.
  void add_leaf(int index);
  /// Starts to sum elements [first, first + count) over all members into sum(), when all leaves are complete
  /// in them. All of them at once if a member has several nodes of the tree.
  work all_reduce(std::int64_t first, std::int64_t count) const;

 private:
  std::vector<bucket_part> parts_;
  std::vector<parameter*> parameters_;
  const collective::logical_rank_map& replicas_;
  communicator& group_;
  gradients::summed_here here_;
  tensor nodes_;                                    // [nodes of this member, at least one; n]
  tensor sum_;                                      // the first row
  std::vector<collective::leaf_accumulator> sums_;  // one, while partial sums are kept
  std::vector<tensor> leaves_;                      // while all are kept
};

}  // namespace troupe
