#pragma once
#include <vector>

#include "troupe/parallel/bucket_plan.hpp"

namespace troupe {

/// The memory of one gradient bucket, and the local sum over the k virtual replicas of this member. Replicas
/// write their leaf one after the other, and two nodes of the fixed tree (troupe/ops/tree_reduction.hpp) are
/// added as soon as both are complete, as in a binary counter. So at most 1 + log2(k) tensors exist, unless a
/// hook needs all leaves.
class reduced_bucket {
 public:
  enum class leaf_storage { partial_sums, all_leaves };

  /// Allocates the sum in memory of `group`. Throws std::invalid_argument if it is on another device than a
  /// parameter.
  reduced_bucket(const planned_bucket& planned, const std::vector<named_parameter>& parameters,
                 communicator& group);

  /// Sets from the next step on whether all leaves are kept, or only the partial sums.
  void set_leaf_storage(leaf_storage storage, int num_leaves);

  const std::vector<bucket_part>& parts() const { return parts_; }
  const std::vector<parameter*>& parameters() const { return parameters_; }
  const tensor& sum() const { return tensors_.front(); }
  /// The tensor in which replica `index` of this member writes its gradients: f32 [n].
  tensor leaf(int index) const;
  /// A view of the gradient of parameter `position` in `leaf`, with its shape.
  tensor part_of(const tensor& leaf, std::size_t position) const;
  /// Called when the leaf of replica `index` is complete. After the last replica, sum() is the sum over this
  /// member's replicas.
  void add_leaf(int index);

 private:
  std::size_t tensor_index_of(int index) const;
  void merge_last();

  std::vector<bucket_part> parts_;
  std::vector<parameter*> parameters_;
  leaf_storage storage_ = leaf_storage::partial_sums;
  int num_leaves_ = 1;
  std::vector<tensor> tensors_;  // leaves, and partial sums over aligned blocks of leaves, in order
  std::size_t num_held_ = 0;     // number of `tensors_` that hold partial sums during a step
};

}  // namespace troupe
