#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/engine/algorithm.hpp"
#include "troupe/collective/shm/memory/control_block.hpp"
#include "troupe/collective/shm/memory/member_memory.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::collective::shm {

struct running_call {
  const collective_operation* what;
  std::uint64_t sequence;
};

/// While it lives this member is in a call: its backend knows from a list, and of collectives the other
/// members know from the control block.
class call_scope {
 public:
  call_scope(std::vector<running_call>& all, control_block& block, const collective_operation& what,
             std::uint64_t sequence);
  call_scope(call_scope&& other) noexcept
      : all_(std::exchange(other.all_, nullptr)), block_(other.block_), call_(other.call_) {}
  call_scope& operator=(call_scope&&) = delete;
  ~call_scope() {
    if (all_) end();
  }

 private:
  void end();
  bool is_collective() const { return call_.what->peer < 0; }

  std::vector<running_call>* all_;
  control_block& block_;
  running_call call_;
};

/// One member's part in one collective call. It fills a slot for each other member, waits until all members
/// have filled theirs, checks that they make the same call, and accesses their tensors. Used by one thread.
class shm_call {
 public:
  /// All references outlive it.
  shm_call(control_block& block, member_memory& memory, const group_description& group, call_scope scope,
           const collective_operation& what, std::uint64_t sequence)
      : block_(block),
        memory_(memory),
        group_(group),
        scope_(std::move(scope)),
        operation_(what),
        sequence_(sequence) {}

  const collective_operation& operation() const { return operation_; }
  int member() const { return block_.member(); }
  int num_members() const { return block_.num_members(); }
  std::size_t element_bytes() const { return size_bytes(operation_.signature.type); }

  // ---- Small calls: elements travel inline, at most control_block::max_inline_bytes to each member.

  /// Fills the slots for the other members with the bytes `bytes_for(member)`, and notifies them.
  template <class Bytes>
  void post_inline(Bytes bytes_for) {
    for (int to = 0; to < num_members(); ++to)
      if (to != member()) post_slot(to, bytes_for(to));
    block_.notify();
  }
  /// The `size_bytes` bytes that `from` posted for this member. After all_arrived().
  const std::byte* inline_from(int from, std::size_t size_bytes) const;

  // ---- Large calls: members access each other's tensors.

  /// Fills the slots for the other members with the locations of this member's tensors, and notifies them.
  void post_tensors(exposure which);
  const std::byte* input_of(int member);
  std::byte* output_of(int member);
  /// From here to finish_access() this member may access the others' tensors. Throws collective_error if a
  /// member has aborted the group.
  void begin_access();
  /// This member has finished its part and does not access the others' tensors any more.
  void finish_access();
  /// Whether all members have called finish_access().
  bool all_finished() const { return block_.all_finished_phase(); }
  /// Copies the result to the caller's tensor, if the others wrote to a copy of it. After all_finished().
  void copy_output() { tensors_->copy_output(); }

  /// Whether all members have filled their slots. Throws collective_error (mismatch) if one makes another
  /// call.
  bool all_arrived();

 private:
  call_slot& begin_slot(int to);
  void post_slot(int to, std::span<const std::byte> bytes);

  control_block& block_;
  member_memory& memory_;
  const group_description& group_;
  call_scope scope_;
  const collective_operation& operation_;
  std::uint64_t sequence_;
  std::unique_ptr<exposed_tensors> tensors_;  // of a large call
  int num_arrived_ = 0;                       // members whose slots were seen to be filled, in order
};

/// Whether `count` elements fit inline into a slot.
inline bool is_small(const shm_call& call, std::int64_t count) {
  return static_cast<std::size_t>(count) * call.element_bytes() <= control_block::max_inline_bytes;
}

/// Throws collective_error with the cause that a member has given, if one has aborted the group.
void throw_if_aborted(const control_block& block, const group_description& group);

}  // namespace troupe::collective::shm
