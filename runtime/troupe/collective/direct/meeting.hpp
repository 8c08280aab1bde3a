#pragma once
#include <memory>
#include <span>

#include "troupe/collective/algorithm.hpp"
#include "troupe/collective/direct/board.hpp"
#include "troupe/collective/direct/member_memory.hpp"
#include "troupe/collective/direct/opened_tensors.hpp"
#include "troupe/collective/direct/presence.hpp"
#include "troupe/collective/group.hpp"

namespace troupe::direct {

/// One member's part in one collective call: it comes with a note for each of the others, sees that all came
/// for the same, and reaches into their tensors.
class meeting {
 public:
  meeting(board& at, member_memory& memory, const group_description& group, presence here,
          const collective_operation& what, std::uint64_t sequence)
      : at_(at), memory_(memory), group_(group), here_(std::move(here)), what_(what), sequence_(sequence) {}

  const collective_operation& what() const { return what_; }
  int member() const { return at_.member(); }
  int num_members() const { return at_.num_members(); }
  std::size_t element_bytes() const { return size_bytes(what_.signature.type); }

  // ---- small calls: what the members need is left with the notes, at most board::small_bytes for each

  /// Leaves a note for each of the others, with the bytes `bytes_for(member)`.
  template <class Bytes>
  void come_with(Bytes bytes_for) {
    for (int to = 0; to < num_members(); ++to)
      if (to != member()) leave_note(to, bytes_for(to));
    at_.ring();
  }
  /// The `size_bytes` bytes that `from` left for this member, once everyone is here.
  const std::byte* left_by(int from, std::size_t size_bytes) const;

  // ---- large calls: members reach into each other's tensors

  /// Leaves notes that say where the tensors are that others reach into.
  void come_with_tensors(exposed which);
  const std::byte* input_of(int member);
  std::byte* output_of(int member);
  /// From here to pass() this member touches the others' tensors. Throws collective_error if one has given
  /// up.
  void reach();
  /// This member has done its part, and touches them no more.
  void pass();
  bool everyone_passed() const { return at_.everyone_passed(); }
  /// Brings the result to where the caller wants it, after the last phase.
  void take_output() { tensors_->take_output(); }

  /// Whether all notes are there. Throws collective_error (mismatch) if one tells of another call.
  bool everyone_is_here();

 private:
  call_note& begin_note(int to);
  void leave_note(int to, std::span<const std::byte> bytes);

  board& at_;
  member_memory& memory_;
  const group_description& group_;
  presence here_;
  const collective_operation& what_;
  std::uint64_t sequence_;
  std::unique_ptr<opened_tensors> tensors_;  // of a large call
  int num_here_ = 0;                         // members whose notes were seen, in order
};

}  // namespace troupe::direct
