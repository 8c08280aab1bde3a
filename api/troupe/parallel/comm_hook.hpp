#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/collective/communicator.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Where the gradient of one parameter lies in a bucket: elements [first, first + extents.num_elements()).
/// `first` is a multiple of 16, so that gradients begin at cache lines; elements between parts are zero.
struct bucket_part {
  std::string parameter;  ///< its name in the whole model
  shape extents;
  std::int64_t first = 0;
};

/// Gradients that are reduced together, n elements in all. The handles are live and the same in every step.
struct gradient_bucket {
  int index = 0;  ///< buckets begin in this order, on all members
  std::vector<bucket_part> parts;
  /// f32 [n] each: the gradients of every virtual replica that this member hosts, in order; one tensor unless
  /// it hosts several. They are scaled already: the sum over all replicas is the mean gradient.
  std::vector<tensor> leaves;
  /// f32 [n], in memory that peers reach without a copy, where there is such: where the sum over all replicas
  /// of all members is to go. It is leaves[0].
  tensor sum;
  int first_replica = 0;  ///< the number of leaves[0] among all replicas
  int num_replicas = 1;   ///< of all members together
};

/// The reduction of one bucket on its way, in rounds of communication.
class bucket_reduction {
 public:
  virtual ~bucket_reduction() = default;
  /// Waits for the round that was begun and begins the next one; false when there was no other: the bucket's
  /// `sum` holds the result. Called at the same points on all members (whenever a later bucket has begun, and
  /// at the end of the backward pass until it is done), so that their calls to the group are in one order:
  /// it must always make the same number of them, whatever comes first. Throws collective_error.
  virtual bool proceed() = 0;
};

/// How the buckets of a DataParallel are reduced, instead of by an all-reduce of f32: less traffic, for
/// example. Used by the one thread that calls DataParallel.
///
/// Compression acts on a virtual replica's leaf, and what it leaves behind (residuals) belongs to that
/// replica; the members' shares are summed in f32 in the fixed tree (troupe/ops/tree_reduction.hpp), so that
/// bits do not depend on which member hosts which replica.
class comm_hook {
 public:
  virtual ~comm_hook() = default;
  /// Called once, before any bucket is reduced, with all of them: the place to allocate what state() lists.
  virtual void prepare(const std::vector<gradient_bucket>& /*buckets*/) {}
  /// Begins the reduction of a bucket whose leaves are complete. Bucket and group outlive the reduction. The
  /// leaves may be written to.
  virtual std::unique_ptr<bucket_reduction> begin(gradient_bucket& bucket, communicator& group) = 0;
  /// Live handles of what is carried from step to step, with the number of the virtual replica in each name:
  /// a part of a snapshot.
  virtual std::vector<named_tensor> state() { return {}; }
};

/// Sums the leaves of this member into `bucket.sum`, in the fixed tree.
void sum_leaves(gradient_bucket& bucket);

}  // namespace troupe
