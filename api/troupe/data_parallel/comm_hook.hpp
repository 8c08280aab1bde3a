#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// The position of one parameter's gradient in a bucket: elements [first, first + extents.num_elements()).
/// `first` is a multiple of 16, so that gradients begin at cache lines; the padding between parts is zero.
struct bucket_part {
  std::string parameter;  ///< its name in the whole model
  shape extents;
  std::int64_t first = 0;
};

/// Gradients that are reduced together, n elements in all. The tensors are handles to the same memory in
/// every step.
struct gradient_bucket {
  int index = 0;  ///< reductions of buckets begin in this order, on all members
  std::vector<bucket_part> parts;
  /// f32 [n] each: the gradients of each virtual replica of this member, in order (the leaves of the
  /// reduction tree); none on a member without replicas. They are scaled by 1 / num_replicas: the sum over
  /// all replicas is the mean gradient.
  std::vector<tensor> leaves;
  /// f32 [n]: receives the sum over all replicas of all members. In memory that peers access without a copy,
  /// if the backend has any. The same tensor as leaves[0], if there is one.
  tensor sum;
  std::vector<int> own_replicas;  ///< [leaves]: the number of each among all replicas, ascending
  /// The replicas of each member: contiguous blocks in the order of the members. The same on all members.
  std::shared_ptr<const collective::logical_rank_map> replicas;
};

/// The reduction of one bucket in progress, in one or more rounds of communication.
class bucket_reduction {
 public:
  virtual ~bucket_reduction() = default;
  /// Waits for the current round and begins the next one. Returns false after the last round: the bucket's
  /// `sum` then holds the result. All members call it at the same points (whenever a later bucket has begun,
  /// and repeatedly at the end of the backward pass), so that their calls to the group are in the same order.
  /// The number of rounds must therefore not depend on timing or values. Throws collective_error.
  virtual bool proceed() = 0;
};

/// Replaces the f32 all_reduce of DataParallel's buckets, for example to compress gradients (as PyTorch's
/// register_comm_hook). Called only by the thread that calls DataParallel.
///
/// Compression acts on the gradients of each virtual replica, and residuals belong to a replica. Sums are in
/// f32 in the fixed tree of troupe/ops/tree_reduction.hpp, so that the bits do not depend on which member
/// hosts which replica.
class comm_hook {
 public:
  virtual ~comm_hook() = default;
  /// Called once with all buckets, before any is reduced; allocates what state() lists.
  virtual void prepare(const std::vector<gradient_bucket>& /*buckets*/) {}
  /// Begins the reduction of a bucket whose leaves are complete. The bucket and the group outlive the
  /// reduction. The hook may overwrite the leaves.
  virtual std::unique_ptr<bucket_reduction> begin(gradient_bucket& bucket, communicator& group) = 0;
  /// Handles to the state that is kept between steps, for snapshots; names contain the index of the virtual
  /// replica.
  virtual std::vector<named_tensor> state() { return {}; }
};

/// A view of the elements of `leaf` that belong to `part`, in the part's shape.
tensor part_of(const tensor& leaf, const bucket_part& part);

/// Starts to sum the leaves of all members into `bucket.sum`, in CPU memory, as a DataParallel without a hook
/// does. The leaves may be overwritten.
work all_reduce_leaves(const gradient_bucket& bucket, communicator& group);

}  // namespace troupe
