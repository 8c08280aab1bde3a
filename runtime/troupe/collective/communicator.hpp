#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/group.hpp"
#include "troupe/collective/operation.hpp"
#include "troupe/collective/operation_queue.hpp"
#include "troupe/collective/profile.hpp"
#include "troupe/collective/recorder.hpp"
#include "troupe/collective/work.hpp"

namespace troupe {

struct communicator_options {
  /// Of calls that do not say their own; above 0.
  std::chrono::milliseconds timeout = std::chrono::seconds(300);
  /// Hears of every call that ended well, and of the time spent waiting; null: nobody does.
  std::shared_ptr<communication_profile> profile = nullptr;
  /// What carries out the calls instead of the group's backend, made from it: a slow link, for measurements.
  std::function<std::unique_ptr<collective_backend>(std::unique_ptr<collective_backend>)> decorate = nullptr;
};

/// One member's end of a group: the collective operations. Every member makes the same collective calls in
/// the same order; each returns at once, and the calls run one after the other. Sends and receives run beside
/// them, in order for each peer and direction.
///
/// Tensors are contiguous and on the device of the backend; f32, bf16, f16 (summed in f32), i32, i64 and u8.
/// n: size(). Broken preconditions throw std::invalid_argument; failures of the group come from work::wait()
/// as collective_error, which names group, sequence number, operation and ranks, on every member. From then
/// on the group is of no use; make a new one.
///
/// The order of reductions over `ucx` and `local` is the fixed tree of troupe/ops/tree_reduction.hpp.
/// Thread-safe, as far as the members' calls are in the same order.
class communicator {
 public:
  communicator(group_description group, std::unique_ptr<collective_backend> backend,
               communicator_options options = {});
  /// Calls that have not ended are cancelled.
  ~communicator();
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;

  const group_description& group() const { return group_; }
  /// This member's number in the group.
  int rank() const { return group_.member; }
  int size() const { return group_.size(); }
  std::string_view backend() const { return backend_->name(); }
  /// Where the tensors of its calls must lie: on the CPU, but for NCCL's.
  device where() const { return backend_->where(); }

  /// x: the same shape on all members; afterwards the reduction of all members' x.
  work all_reduce(const tensor& x, reduce_op op = reduce_op::sum, const call_options& options = {});
  work all_reduce(const tensor& x, const tensor& result, reduce_op op, const call_options& options = {});

  /// x: [n * k] elements, result: [k]: part `rank()` of the reduction. The result may be that part of x.
  work reduce_scatter(const tensor& x, tensor result, reduce_op op = reduce_op::sum,
                      const call_options& options = {});
  /// Unequal parts: `parts` are the elements of each member, the same list on all.
  work reduce_scatter(const tensor& x, tensor result, std::vector<std::int64_t> parts,
                      reduce_op op = reduce_op::sum, const call_options& options = {});

  /// part: [k] elements, all: [n * k], in order of the members. The part may lie in its place in `all`.
  work all_gather(const tensor& part, tensor all, const call_options& options = {});
  work all_gather(const tensor& part, tensor all, std::vector<std::int64_t> parts,
                  const call_options& options = {});

  /// x of member `root` comes to all.
  work broadcast(tensor x, int root, const call_options& options = {});
  /// The reduction comes to member `root`'s `result`, which may be its x; it is undefined on the others.
  work reduce(const tensor& x, tensor result, int root, reduce_op op = reduce_op::sum,
              const call_options& options = {});
  /// part: [k]; `all`: [n * k] on member `root`, undefined on the others.
  work gather(const tensor& part, tensor all, int root, const call_options& options = {});
  /// `all`: [n * k] on member `root`, undefined on the others; part: [k].
  work scatter(const tensor& all, tensor part, int root, const call_options& options = {});
  /// x: [n * k]; result: [n * k], whose part i is part `rank()` of member i's x. Not in place.
  work all_to_all(const tensor& x, tensor result, const call_options& options = {});

  /// To and from one other member: the same shape and dtype on both sides.
  work send(const tensor& x, int to, const call_options& options = {});
  work receive(tensor x, int from, const call_options& options = {});

  work barrier(const call_options& options = {});

  /// A tensor in memory that the other members reach without a copy, where the backend has such; its elements
  /// are zero. Calls with such tensors on every member are the fastest.
  tensor allocate(shape extents, dtype type = dtype::f32) {
    return backend_->allocate(std::move(extents), type);
  }

  /// Gives up for all members: every call fails with collective_error (cancelled) that tells `cause`.
  void abort(const std::string& cause);
  /// Gives up for all members with this error.
  void abort(const collective_error& why);
  /// What every call fails with; null while all is well.
  std::exception_ptr failure() { return queue_.failure(); }
  /// The last calls, one line each.
  std::string recent_calls() const { return recorder_.text(); }

 private:
  operation_queue::callbacks hooks();
  work start(collective_operation&& what, const call_options& options);
  std::exception_ptr timeout_error(const call& late);
  std::exception_ptr cancel_error(const call& unwanted) const;
  std::exception_ptr with_last_calls(const std::exception_ptr& error) const;
  void on_end(const call& what);
  void on_waited(const call& what, call::clock::time_point since);
  profile_key key_of(const call& what) const;
  void require_member(int member, const char* where) const;
  void require_place(const tensor& x, const collective_operation& what) const;
  void require_on_root(const tensor& given, int root, const char* where, const char* what) const;

  group_description group_;
  communicator_options options_;
  std::unique_ptr<collective_backend> backend_;
  call_recorder recorder_;
  operation_queue queue_;
};

}  // namespace troupe
