#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/operation.hpp"
#include "troupe/collective/work.hpp"

namespace troupe {

class communicator;

struct group_options {
  /// How long forming the group may take, and each call that does not say its own; above 0.
  std::chrono::milliseconds timeout = std::chrono::seconds(300);
};

/// Some processes of a World, as one of them sees them: the collective operations. Every member makes the
/// same calls in the same order. Each returns at once; the calls run one after the other, sends and receives
/// beside them. `work::wait` returns when the call has ended and throws collective_error if it failed, on
/// every member; from then on the group is of no use, and a new one works.
///
/// Roots and peers are ranks of the World, as in PyTorch; parts of tensors are in the order of ranks().
/// Tensors are contiguous; see communicator for their shapes. n: size().
///
/// A handle: copies name the same group, which lasts as long as they or a `work` of theirs, and keeps its
/// World. Thread-safe, as far as the members' calls are in the same order. Calls of a process that is no
/// member throw std::logic_error.
class ProcessGroup {
 public:
  explicit ProcessGroup(std::shared_ptr<communicator> own);
  /// Of other processes: it tells who they are, and nothing else.
  static ProcessGroup of_others(std::vector<int> ranks);

  /// "default", "{0,2,4}", ...: as errors and the profile call it.
  const std::string& name() const;
  /// In the World, by member.
  const std::vector<int>& ranks() const;
  int size() const { return static_cast<int>(ranks().size()); }
  /// This process's number in the group; -1: it is no member.
  int rank() const;
  bool contains(int world_rank) const;
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
  work broadcast(tensor x, int root, const call_options& options = {}) const;
  /// `result` is undefined on all but the root, as is `all` in gather and scatter.
  work reduce(const tensor& x, tensor result, int root, reduce_op op = reduce_op::sum,
              const call_options& options = {}) const;
  work gather(const tensor& part, tensor all, int root, const call_options& options = {}) const;
  work scatter(const tensor& all, tensor part, int root, const call_options& options = {}) const;
  /// x, result: [n * k] elements.
  work all_to_all(const tensor& x, tensor result, const call_options& options = {}) const;
  work send(const tensor& x, int to, const call_options& options = {}) const;
  work receive(tensor x, int from, const call_options& options = {}) const;
  work barrier(const call_options& options = {}) const;

  /// A tensor of zeros that the other members reach without a copy, where the backend has such memory.
  tensor allocate(shape extents, dtype type = dtype::f32) const;
  /// Gives up for all members, which hear `cause`.
  void abort(const std::string& cause) const;
  /// Whether a call has failed, and so every further one would.
  bool has_failed() const;
  /// The last calls, one line each.
  std::string recent_calls() const;

  /// This process's end, which keeps group and World: what DataParallel and SyncBatchNorm take.
  operator std::shared_ptr<communicator>() const;

 private:
  ProcessGroup() = default;
  communicator& own() const;
  /// The member's number of a rank of the World.
  int member_of(int world_rank, const char* where) const;
  work held(work started) const;

  std::shared_ptr<communicator> own_;  // null: no member
  std::shared_ptr<const std::vector<int>> others_;
};

}  // namespace troupe
