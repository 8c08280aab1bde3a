#pragma once
#include <vector>

#include "troupe/parallel/bucket_plan.hpp"

namespace troupe {

/// The memory of one bucket of a member that hosts k virtual replicas, and how their gradients become one
/// sum: replica after replica writes its leaf, and leaves are summed in the fixed tree of
/// troupe/ops/tree_reduction.hpp as soon as both halves of a node are there. So no more than 1 + log2(k)
/// tensors exist, unless all leaves are kept for a hook.
class reduced_bucket {
 public:
  enum class leaves { summed, kept };

  /// The sum lies in memory of `group`. Throws std::invalid_argument if that is on another device than a
  /// parameter.
  reduced_bucket(const planned_bucket& planned, const std::vector<named_parameter>& parameters,
                 communicator& group);

  /// How leaves are held from the next step on.
  void hold(leaves how, int num_leaves);

  const std::vector<bucket_part>& parts() const { return parts_; }
  const std::vector<parameter*>& parameters() const { return parameters_; }
  const tensor& sum() const { return tensors_.front(); }
  /// Where replica `index` of this member writes its gradients: f32 [n].
  tensor leaf(int index) const;
  /// The part of parameter `position` in it, of its shape.
  tensor part_of(const tensor& leaf, std::size_t position) const;
  /// The leaf of replica `index` is complete; after that of the last one, sum() is the sum of this member's.
  void add_leaf(int index);

 private:
  std::size_t place_of(int index) const;
  void merge_last();

  std::vector<bucket_part> parts_;
  std::vector<parameter*> parameters_;
  leaves how_ = leaves::summed;
  int num_leaves_ = 1;
  std::vector<tensor> tensors_;  // leaves and sums of aligned blocks of them, in order
  std::size_t num_held_ = 0;     // of these, while a step is on its way
};

}  // namespace troupe
