#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "troupe/collective/calls/collective_error.hpp"
#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/calls/logical_rank_map.hpp"
#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/calls/work.hpp"
#include "troupe/collective/communicator/group_progress.hpp"
#include "troupe/collective/communicator/open_groups.hpp"
#include "troupe/collective/diagnostics/flight_recorder.hpp"
#include "troupe/collective/diagnostics/profile.hpp"

namespace troupe {

struct communicator_options {
  /// Of calls without a time-out of their own; above 0.
  std::chrono::milliseconds timeout = std::chrono::seconds(300);
  /// Records every call that ended well, and the time spent waiting. Null: no profile.
  std::shared_ptr<collective::communication_profile> profile = nullptr;
  /// Lists the group as long as it exists. Null: nobody watches it.
  std::shared_ptr<collective::open_groups> listed_in = nullptr;
  /// Advances the calls that no thread waits for: the same for all groups of a process. Null: one for this
  /// group.
  std::shared_ptr<collective::progress_engine> engine = nullptr;
  /// Called after each call has ended, well or not, on the thread that advances it: wakes who asks
  /// work::is_done. In a group that has failed, within the call that submits. Must not block, nor call the
  /// group. Null: nobody asks.
  std::function<void()> on_call_end = nullptr;
  /// Wraps the group's backend, for example into a throttled_backend. For measurements and tests.
  std::function<std::unique_ptr<collective::collective_backend>(
      std::unique_ptr<collective::collective_backend>)>
      decorate = nullptr;
};

/// The collective operations of one member of a group. All members make the same collective calls in the same
/// order. A call returns at once; the calls run one after the other. Sends and receives run beside them, in
/// order for each peer and direction.
///
/// Tensors are contiguous and on the backend's device; f32, bf16, f16 (summed in f32), i32, i64 and u8; bool
/// too in calls that move elements. Every reduction of NaN and something else is NaN, max and min too (but
/// over `nccl`: NCCL leaves NaN out of max and min). n:
/// size(). A broken precondition throws std::invalid_argument. When the group fails, work::wait() throws
/// collective_error on every member, which names group, sequence number, operation and ranks. Afterwards all
/// calls fail; make a new group.
///
/// The order of reductions over `ucx` and `local` is the fixed tree of troupe/ops/tree_reduction.hpp.
/// Thread-safe; the program has to keep the order of calls equal on all members.
class communicator {
 public:
  communicator(group_description group, std::unique_ptr<collective::collective_backend> backend,
               communicator_options options = {});
  /// Calls that have not ended are cancelled.
  ~communicator();
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;

  const group_description& group() const { return group_; }
  /// This member's index in the group, 0 to n-1.
  member_index rank() const { return group_.member; }
  int size() const { return group_.size(); }
  std::string_view backend() const { return backend_->name(); }
  /// Where the tensors of its calls must be: on a GPU for NCCL, else on the CPU.
  troupe::device device() const { return backend_->device(); }
  /// Whether reductions follow the fixed tree, and all_reduce_leaves is possible: over `ucx` and `local`.
  bool has_fixed_tree() const { return backend_->has_fixed_tree(); }

  /// x: the same shape on all members. The result is the reduction of all members' x; without `result` it
  /// replaces x.
  work all_reduce(const tensor& x, reduce_op op = reduce_op::sum, const call_options& options = {});
  work all_reduce(const tensor& x, const tensor& result, reduce_op op, const call_options& options = {});

  /// The reduction of leaves that the members host (logical_rank_map): L leaves give the bits that all_reduce
  /// gives L members with a leaf each, however they are hosted.
  /// - nodes: those of this member's leaves (leaf_accumulator), f32 [m, k] for m nodes, undefined without
  ///   leaves
  /// - result: [k] of f32, bf16 or f16 on every member, rounded once, at the end; in f32 it may be the first
  ///   node
  /// - op: sum, or mean over the leaves
  ///
  /// Throws std::invalid_argument over a backend without the fixed tree. Members whose logical-rank maps
  /// differ fail as those do that make different calls.
  ///
  /// The nodes of a member are 4 m k bytes. Between hosts it sends (m + 1) (n-1) messages for each block,
  /// with (n-1)/n of its nodes' bytes and of the result's (net/algorithms.hpp, which is also taken where
  /// hosts have several members). On one host it reads 1/n of all nodes and writes 1/n of the n results
  /// (shm/algorithms.hpp). Where each member has one node of equal height, in order, and the result is f32,
  /// the call is an all_reduce of them, if op is sum or each has one leaf.
  work all_reduce_leaves(const tensor& nodes, const tensor& result, const collective::logical_rank_map& map,
                         reduce_op op = reduce_op::sum, const call_options& options = {});

  /// x: [n * k]; result: [k], part `rank()` of the reduction. The result may be that part of x.
  work reduce_scatter(const tensor& x, tensor result, reduce_op op = reduce_op::sum,
                      const call_options& options = {});
  /// Unequal parts: the number of elements of each member's part, the same list on all members.
  work reduce_scatter(const tensor& x, tensor result, std::vector<std::int64_t> parts,
                      reduce_op op = reduce_op::sum, const call_options& options = {});

  /// part: [k]; all: [n * k], in the order of the members. The part may be its place in `all`.
  work all_gather(const tensor& part, tensor all, const call_options& options = {});
  work all_gather(const tensor& part, tensor all, std::vector<std::int64_t> parts,
                  const call_options& options = {});

  /// Copies x of member `root` to x of all members.
  work broadcast(tensor x, member_index root, const call_options& options = {});
  /// As all_reduce, with a result on member `root` only, where it may be x. `result` is undefined on the
  /// others.
  work reduce(const tensor& x, tensor result, member_index root, reduce_op op = reduce_op::sum,
              const call_options& options = {});
  /// part: [k]; all: [n * k] on member `root`, undefined on the others.
  work gather(const tensor& part, tensor all, member_index root, const call_options& options = {});
  /// all: [n * k] on member `root`, undefined on the others; part: [k].
  work scatter(const tensor& all, tensor part, member_index root, const call_options& options = {});
  /// x: [n * k]; result: [n * k], part i of which is part `rank()` of member i's x. Not in place.
  work all_to_all(const tensor& x, tensor result, const call_options& options = {});

  /// Point to point with another member: the same number of elements and dtype on both sides.
  work send(const tensor& x, member_index to, const call_options& options = {});
  work receive(tensor x, member_index from, const call_options& options = {});

  work barrier(const call_options& options = {});

  /// A tensor of zeros in memory that the other members access without a copy, if the backend has such
  /// memory. Calls are fastest if the tensors of all members are of this kind.
  tensor allocate(shape extents, dtype type = dtype::f32) {
    return backend_->allocate(std::move(extents), type);
  }

  /// Aborts the group on all members: every call fails with collective_error (cancelled) and `cause`.
  void abort(const std::string& cause);
  /// Aborts the group on all members with this error.
  void abort(const collective_error& why);
  /// The error with which every call fails; null while there is none.
  std::exception_ptr failure() { return progress_.failure(); }
  /// The last calls, one line each.
  std::string recent_calls() const { return recorder_.text(); }
  /// Where this member is in the order of collective calls. From any thread.
  collective::collective_position position() const;

 private:
  collective::operation_queue::callbacks hooks();
  work start(collective::collective_operation&& what, const call_options& options);
  std::exception_ptr timeout_error(const collective::call& late);
  std::exception_ptr cancel_error(const collective::call& unwanted) const;
  std::exception_ptr with_last_calls(const std::exception_ptr& error) const;
  void on_end(const collective::call& what);
  void on_waited(const collective::call& what, collective::call::clock::time_point since);
  collective::profile_key key_of(const collective::call& what) const;
  void require_member(member_index member, const char* where) const;
  void require_fixed_tree(const collective::logical_rank_map& map) const;
  void require_place(const tensor& x, const collective::collective_operation& what) const;
  void require_on_root(const tensor& given, member_index root, const char* where, const char* what) const;

  group_description group_;
  communicator_options options_;
  std::unique_ptr<collective::collective_backend> backend_;
  collective::flight_recorder recorder_;
  collective::group_progress progress_;
};

}  // namespace troupe
