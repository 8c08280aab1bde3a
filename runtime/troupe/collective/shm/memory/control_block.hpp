#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/collective/calls/collective_error.hpp"
#include "troupe/collective/calls/operation.hpp"

namespace troupe::collective::shm {

/// Where the elements of a tensor are, in a form that has the same meaning in every member's process.
struct buffer_location {
  static constexpr std::uint64_t unreachable = ~std::uint64_t{0};
  std::uint64_t segment = unreachable;  ///< unreachable: in memory that other members cannot access
  std::uint64_t offset = 0;             ///< in the segment, in bytes
  bool is_reachable() const { return segment != unreachable; }
};

/// What one member tells another one when it enters a call. A small call needs the first cache line only.
struct alignas(64) call_slot {
  std::atomic<std::uint64_t> sequence;  ///< of the call; written last
  call_signature signature;
  std::byte first_bytes[32];  ///< the elements of a call that has no more than these
  buffer_location input, output;
};

/// A view of the memory that all members of a group on one host share for coordination: slots, counters and
/// futex words. Plain bytes without pointers, since every process maps it at another address.
///
/// Layout, for n members: header | member blocks [n] | slots [to][from][2] | send slots [to][from][4] |
/// receive counters [to][from] | inline bytes of each slot and send slot. A copy of the view is a view of the
/// same memory. One thread of a member uses it at a time, but for notify(member), which any thread may call.
class control_block {
 public:
  /// Up to this size elements travel inline, in memory that belongs to the slot.
  static constexpr std::size_t max_inline_bytes = 1024;
  /// How many sends to one member may be waiting for its receives.
  static constexpr std::uint64_t max_sends_in_flight = 4;

  static std::size_t size_bytes(int num_members);

  /// `memory`: size_bytes(n) bytes, the same for all members, aligned to 64, zero before the first use.
  /// engine_events: by member, the event of its process's progress engine.
  control_block(std::byte* memory, int num_members, int member, std::vector<int> engine_events);

  int num_members() const { return num_members_; }
  int member() const { return member_; }

  // ---- Slots of collective calls. Two per pair, used in turn: no member enters a call before all have
  // entered the one before it, so the slot of the call before that is free.

  call_slot& slot(int to, int from, std::uint64_t sequence) const;
  std::byte* inline_bytes(int to, int from, std::uint64_t sequence) const;

  // ---- Slots of sends, max_sends_in_flight per pair. A slot is free when its send has been received.

  call_slot& send_slot(int to, int from, std::uint64_t sequence) const;
  std::byte* sent_inline_bytes(int to, int from, std::uint64_t sequence) const;
  /// By the receiver: it has copied this send of member `from`.
  void acknowledge_send(int from, std::uint64_t sequence);
  /// By the sender: whether `to` has received this send and all before it. The counter is in the receiver's
  /// cache, so it is loaded only if the last value seen is too small.
  bool is_received(int to, std::uint64_t sequence);
  /// By the sender, after send `sequence`: loads the counter early, so that later sends seldom wait for it.
  void refresh_received(int to, std::uint64_t sequence);

  // ---- Phases. Each member counts the phases of calls that it has finished.

  void finish_phase();
  /// Whether all members have finished as many phases as this one.
  bool all_finished_phase() const;
  bool has_finished_phase(int member) const;

  // ---- The newest collective call that each member has entered and left, for failure reports.

  void enter(std::uint64_t sequence, const call_signature& signature);
  void leave(std::uint64_t sequence);
  struct last_call {
    std::uint64_t entered = 0, left = 0;
    call_signature signature;
  };
  last_call last_of(int member) const;

  // ---- Access. Between these two calls this member may read and write the tensors of others.

  void begin_access();
  void end_access();
  bool is_accessing(int member) const;

  // ---- Sleeping on the member's futex word, or on its engine's event.

  /// Wakes the members that sleep. To be called after something was written that they may wait for.
  void notify();
  /// Wakes one member, which may be this one.
  void notify(int member);
  /// From here to cancel_sleep() the others notify this member; what they wrote before is visible.
  /// engine_event: as collective_backend::announce_sleep.
  void announce_sleep(int engine_event);
  void cancel_sleep();
  /// Sleeps until this member is notified, counted from announce_sleep(), or `at_most` has passed.
  void sleep(std::chrono::microseconds at_most);
  /// The longest safe sleep up to `sleep`: short where the system cannot guarantee every notification.
  std::chrono::microseconds bounded(std::chrono::microseconds sleep) const;

  // ---- Failure of the group.

  struct abort_info {
    int member = -1;  ///< the member that aborted first
    collective_failure kind = collective_failure::cancelled;
    std::uint64_t sequence = 0;
    std::vector<world_rank> ranks;
    std::string cause;
  };
  /// Stores the cause, unless another member was first, and wakes all members.
  void abort(const collective_error& why);
  bool is_aborted() const;
  abort_info aborted_by() const;

 private:
  struct header;
  struct member_block;
  header& head() const;
  member_block& block_of(int member) const;
  std::size_t pair(int to, int from) const;
  std::atomic<std::uint64_t>& received_count(int to, int from) const;

  std::byte* memory_;
  int num_members_, member_;
  std::vector<int> engine_events_;
  std::uint64_t phase_ = 0;
  std::uint32_t seen_notifications_ = 0;
  bool sleeper_fences_;  ///< see the comment on ordering in the source
  bool may_miss_notifications_ = false;
  std::vector<std::uint64_t> known_received_;  ///< by receiver
  // Where the areas begin.
  call_slot* slots_;
  call_slot* send_slots_;
  std::byte* received_counts_;
  std::byte* inline_bytes_;
};

}  // namespace troupe::collective::shm
