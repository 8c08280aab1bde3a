#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/operation.hpp"

namespace troupe::direct {

/// Where a tensor's elements are, as members tell each other.
struct buffer_place {
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
  std::uint64_t segment = nowhere;  ///< nowhere: in memory that others cannot reach
  std::uint64_t offset = 0;         ///< bytes
  bool is_reachable() const { return segment != nowhere; }
};

/// What a member leaves for another one when it enters a call. The first cache line is all that a small
/// call needs.
struct alignas(64) call_note {
  std::atomic<std::uint64_t> sequence;  ///< of the call; written last
  call_signature signature;
  std::byte first_bytes[32];  ///< of a small call's elements
  buffer_place input, output;
};

/// Memory that all members of a group on one host share, and in it what they need to meet: notes, counters
/// and bells. Plain bytes without pointers, since it lies at another address in every process.
///
/// Layout, for n members: header | cells [n] | notes [to][from][2] | sends [to][from][4] | counters of sends
/// [to][from] | small bytes of each note and send.
class board {
 public:
  /// Elements up to this size are left with the note.
  static constexpr std::size_t small_bytes = 1024;
  /// How many sends to one member may wait to be taken.
  static constexpr std::uint64_t sends_in_flight = 4;

  static std::size_t size_bytes(int num_members);

  /// `memory` holds size_bytes(n) zero bytes at first, aligned to 64, and is the same memory for all.
  board(std::byte* memory, int num_members, int member);

  int num_members() const { return num_members_; }
  int member() const { return member_; }

  // ---- notes of collective calls: one slot for odd numbers and one for even ones, since nobody begins a
  // call before everybody has begun the one before

  call_note& note(int to, int from, std::uint64_t sequence) const;
  std::byte* small(int to, int from, std::uint64_t sequence) const;

  // ---- sends: some slots a pair, free again when the receiver has taken what was sent

  call_note& send_note(int to, int from, std::uint64_t sequence) const;
  std::byte* sent_bytes(int to, int from, std::uint64_t sequence) const;
  /// The receiver has copied what member `from` sent.
  void take_send(int from, std::uint64_t sequence);
  /// Whether the receiver `to` has taken this one and all before. The counter is in its core's cache, so it
  /// is looked at only if that was not known before.
  bool is_taken(int to, std::uint64_t sequence);
  /// After send `sequence` has left: looks what was taken while nobody waits for that, so that the next ones
  /// seldom have to.
  void look_at_taken(int to, std::uint64_t sequence);

  // ---- progress of the members through the phases of calls

  /// This member has done one phase more.
  void pass_phase();
  /// Whether the others have done as many.
  bool everyone_passed() const;
  bool has_passed(int member) const;

  /// The newest call that each member has entered and left, for reports.
  void enter(std::uint64_t sequence, const call_signature& signature);
  void leave(std::uint64_t sequence);
  struct last_call {
    std::uint64_t entered = 0, left = 0;
    call_signature signature;
  };
  last_call last_of(int member) const;

  /// Between these this member touches the tensors of others, unless somebody had given up before.
  void begin_reach();
  void end_reach();
  bool is_reaching(int member) const;

  // ---- waiting

  /// Wakes the members that sleep, after something was written that they may wait for.
  void ring();
  /// The same for one, which may be this one.
  void ring(int member);
  /// From now on others ring; what they wrote before can be seen.
  void announce_sleep();
  void cancel_sleep();
  /// Until somebody has rung since announce_sleep, or `at_most` has passed.
  void sleep(std::chrono::microseconds at_most);
  /// How long a sleep that was announced may be, of which it is wanted that it be so long: less where rings
  /// may be missed.
  std::chrono::microseconds bounded(std::chrono::microseconds sleep) const;
  /// How often somebody has rung for this member; for a thread that passes it on to one that waits elsewhere.
  std::uint32_t num_rings() const;
  /// Until that is another number than `known`, or `at_most` has passed.
  void await_ring(std::uint32_t known, std::chrono::microseconds at_most) const;

  // ---- giving up

  struct end {
    int member = -1;  ///< who gave up first
    collective_failure kind = collective_failure::cancelled;
    std::uint64_t sequence = 0;
    std::vector<int> ranks;
    std::string cause;
  };
  /// The first who gives up says why, and everybody is woken.
  void abort(const collective_error& why);
  bool is_aborted() const;
  end aborted_by() const;

 private:
  struct header;
  struct cell;
  header& head() const;
  cell& cell_of(int member) const;
  std::size_t pair(int to, int from) const;
  std::atomic<std::uint64_t>& sends_taken(int to, int from) const;

  std::byte* memory_;
  int num_members_, member_;
  std::uint64_t phase_ = 0;
  std::uint32_t bell_ = 0;
  bool is_fenced_by_sleepers_;
  bool may_miss_rings_ = false;
  std::vector<std::uint64_t> known_taken_;  ///< by receiver
  // Where the areas begin.
  call_note* notes_;
  call_note* send_notes_;
  std::byte* taken_;
  std::byte* small_;
};

}  // namespace troupe::direct
