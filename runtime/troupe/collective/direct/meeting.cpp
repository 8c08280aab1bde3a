#include "troupe/collective/direct/meeting.hpp"

#include <cstring>

#include "troupe/collective/direct/aborted.hpp"
#include "troupe/collective/post_mortem.hpp"

namespace troupe::direct {

/// A note's slot, free since everybody has begun the call before: nobody reads the one before that any more.
call_note& meeting::begin_note(int to) {
  auto& note = at_.note(to, member(), sequence_);
  note.signature = what_.signature;
  return note;
}

void meeting::leave_note(int to, std::span<const std::byte> bytes) {
  auto& note = begin_note(to);
  auto* place =
      bytes.size() <= sizeof note.first_bytes ? note.first_bytes : at_.small(to, member(), sequence_);
  if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
  note.sequence.store(sequence_, std::memory_order_release);
}

const std::byte* meeting::left_by(int from, std::size_t size_bytes) const {
  auto& note = at_.note(member(), from, sequence_);
  return size_bytes <= sizeof note.first_bytes ? note.first_bytes : at_.small(member(), from, sequence_);
}

void meeting::come_with_tensors(exposed which) {
  tensors_ = std::make_unique<opened_tensors>(memory_, what_, which);
  for (int to = 0; to < num_members(); ++to) {
    if (to == member()) continue;
    auto& note = begin_note(to);
    note.input = tensors_->input_place();
    note.output = tensors_->output_place();
    note.sequence.store(sequence_, std::memory_order_release);
  }
  at_.ring();
}

void meeting::reach() {
  at_.begin_reach();
  throw_if_aborted(at_, group_);
}

void meeting::pass() {
  at_.end_reach();
  at_.pass_phase();
}

const std::byte* meeting::input_of(int from) {
  if (from == member()) return tensors_->input();
  return memory_.find(from, at_.note(member(), from, sequence_).input);
}

std::byte* meeting::output_of(int to) {
  if (to == member()) return tensors_->output();
  return memory_.find(to, at_.note(member(), to, sequence_).output);
}

bool meeting::everyone_is_here() {
  for (; num_here_ < num_members(); ++num_here_) {
    if (num_here_ == member()) continue;
    const auto& note = at_.note(member(), num_here_, sequence_);
    if (note.sequence.load(std::memory_order_acquire) != sequence_) return false;
    if (note.signature != what_.signature)
      throw post_mortem(group_).mismatch({what_.signature, sequence_}, num_here_, note.signature);
  }
  return true;
}

}  // namespace troupe::direct
