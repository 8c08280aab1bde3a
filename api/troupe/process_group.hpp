#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/collective/calls/collective_error.hpp"
#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/calls/work.hpp"

namespace troupe {

class communicator;

struct group_options {
  /// The timeout for forming the group, and for each call without a timeout of its own; above 0.
  std::chrono::milliseconds timeout = std::chrono::seconds(300);
};

/// The collective operations over some processes of a World. Every member makes the same calls in the same
/// order. Each call returns at once; collective calls run one after the other, sends and receives
/// concurrently with them. `work::wait` returns when the call is complete. If a call fails, wait throws
/// collective_error on every member, and the group cannot be used any more; a new group can be created.
///
/// Roots and peers are ranks in the World, as in PyTorch (those of a communicator are members). Chunks of
/// tensors are in the order of ranks(). Tensors are contiguous; see communicator for their shapes. n is
/// size().
///
/// A handle: copies refer to the same group. The group lives as long as a handle or a `work` of it, and keeps
/// its World alive. Thread-safe, provided that all members make their calls in the same order. Collective
/// calls of a process that is not a member throw std::logic_error.
class ProcessGroup {
 public:
  explicit ProcessGroup(std::shared_ptr<communicator> own);
  /// The handle of a process that is not a member: it only gives ranks() and contains().
  static ProcessGroup non_member(std::vector<world_rank> ranks);

  /// The name in errors and in the profile: "default", "{0,2,4}", ...
  const std::string& name() const;
  /// The members' ranks in the World, in the order of the group.
  const std::vector<world_rank>& ranks() const;
  int size() const { return static_cast<int>(ranks().size()); }
  /// The index of this process in the group; -1 if it is not a member.
  member_index rank() const;
  bool contains(world_rank rank) const;
  /// "ucx", "local", ...
  std::string_view backend() const;

  work all_reduce(tensor x, reduce_op op = reduce_op::sum, const call_options& options = {}) const;
  work all_reduce(const tensor& x, tensor result, reduce_op op, const call_options& options = {}) const;
  /// x: [n * k] elements, result: [k].
  work reduce_scatter(const tensor& x, tensor result, reduce_op op = reduce_op::sum,
                      const call_options& options = {}) const;
  work reduce_scatter(const tensor& x, tensor result, std::vector<std::int64_t> parts,
                      reduce_op op = reduce_op::sum, const call_options& options = {}) const;
  /// part: [k] elements, all: [n * k].
  work all_gather(const tensor& part, tensor all, const call_options& options = {}) const;
  work all_gather(const tensor& part, tensor all, std::vector<std::int64_t> parts,
                  const call_options& options = {}) const;
  work broadcast(tensor x, world_rank root, const call_options& options = {}) const;
  /// `result` is undefined on all but the root, as is `all` in gather and scatter.
  work reduce(const tensor& x, tensor result, world_rank root, reduce_op op = reduce_op::sum,
              const call_options& options = {}) const;
  work gather(const tensor& part, tensor all, world_rank root, const call_options& options = {}) const;
  work scatter(const tensor& all, tensor part, world_rank root, const call_options& options = {}) const;
  /// x, result: [n * k] elements.
  work all_to_all(const tensor& x, tensor result, const call_options& options = {}) const;
  work send(const tensor& x, world_rank to, const call_options& options = {}) const;
  work receive(tensor x, world_rank from, const call_options& options = {}) const;
  work barrier(const call_options& options = {}) const;

  /// Allocates a zero tensor, in memory that other members access without a copy if the backend supports
  /// that.
  tensor allocate(shape extents, dtype type = dtype::f32) const;
  /// Fails the group on all members, with `cause` in their errors.
  void abort(const std::string& cause) const;
  /// Whether a call has failed; every further call then fails too.
  bool has_failed() const;
  /// The most recent calls, one per line, for diagnosis.
  std::string recent_calls() const;

  /// The communicator of this process, as DataParallel and SyncBatchNorm take it; it keeps group and World
  /// alive.
  operator std::shared_ptr<communicator>() const;

 private:
  ProcessGroup() = default;
  communicator& own() const;
  /// Converts a rank in the World to a member index.
  member_index member_of(world_rank rank, const char* function) const;
  work keep_alive(work started) const;

  std::shared_ptr<communicator> communicator_;  // null: no member
  std::shared_ptr<const std::vector<world_rank>> non_member_ranks_;
};

}  // namespace troupe
