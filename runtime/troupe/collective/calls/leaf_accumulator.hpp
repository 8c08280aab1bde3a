#pragma once
#include <cstdint>
#include <vector>

#include "troupe/collective/calls/logical_rank_map.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::collective {

/// Adds up the gradients of one member's leaves, in f32 and in the order of the tree, to the nodes that the
/// member contributes to communicator::all_reduce_leaves. The leaves come in ascending order, whole tensors
/// one after the other. A sum is combined with its sibling as soon as both are complete. So k leaves that are
/// one node of the tree, k a power of two, need 1 + log2(k) tensors, with the leaf that is being added. Other
/// leaves need one for each node, and what the largest node needs beside it. Not thread-safe.
class leaf_accumulator {
 public:
  /// left += right, f32 tensors of equal shape on the device of the nodes.
  using addition = void (*)(tensor& left, const tensor& right);
  static void add_on_cpu(tensor& left, const tensor& right);

  /// nodes: memory for the nodes, f32, `num_elements` for each; the reduction needs no copy of it if it is
  /// from communicator::allocate. Undefined: allocated here, on the CPU. Otherwise throws
  /// std::invalid_argument. What else is needed is allocated on the same device, for which `add` is.
  leaf_accumulator(const logical_rank_map& map, member_index member, std::int64_t num_elements,
                   tensor nodes = {}, addition add = add_on_cpu);

  /// Memory in which the gradient of the member's leaf number `index` may be computed, so that add() does not
  /// copy it: f32 [num_elements]. Free from when the leaf before it is added.
  tensor place_of(std::size_t index) const;
  /// gradient: the leaf's place_of(), or another tensor of `num_elements` that is f32, bf16 or f16 on the
  /// CPU. Throws std::invalid_argument for another tensor, and for another leaf than the next one of the
  /// member.
  void add(int leaf, const tensor& gradient);
  /// The tensors that hold sums now: complete nodes, and what waits for its sibling.
  int num_partial_sums() const { return static_cast<int>(sums_.size()); }
  bool is_complete() const { return num_added_ == steps_.size(); }
  /// The nodes of the member, [number of nodes, num_elements]; undefined for a member without leaves. The
  /// same memory each time. Throws std::logic_error while a leaf is missing.
  const tensor& nodes() const;
  /// Begins again with the first leaf: of the next step. The nodes given out are overwritten.
  void restart();

 private:
  /// What the next leaf does.
  struct step {
    int leaf = 0;
    int row = 0;         ///< of the node that it belongs to
    int depth = 0;       ///< how many sums of this node wait for it: 0 in the node's row, others beside it
    int num_merges = 0;  ///< how many inner nodes it completes
  };
  static void append_steps(const tree_node& node, int row, int depth, std::vector<step>& steps);
  const step& require_next(int leaf) const;

  std::int64_t num_elements_;
  addition add_;
  tensor nodes_;
  std::vector<step> steps_;     // by leaf
  std::vector<tensor> beside_;  // by depth - 1
  std::size_t num_added_ = 0;
  std::vector<tensor> sums_;  // complete nodes, and of the node in progress complete left children
};

}  // namespace troupe::collective
