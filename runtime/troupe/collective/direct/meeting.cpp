#include "troupe/collective/direct/meeting.hpp"

#include <algorithm>
#include <cstring>

#include "troupe/collective/direct/aborted.hpp"
#include "troupe/collective/direct/share.hpp"
#include "troupe/collective/post_mortem.hpp"

namespace troupe::direct {
namespace {

void copy_elements(const tensor& from, tensor& to) {
  copy_bytes(from.bytes().data(), to.bytes().data(), to.size_bytes(), store_for(to.size_bytes()));
}

}  // namespace

meeting::meeting(board& at, member_memory& memory, const group_description& group, presence here,
                 const collective_operation& what, std::uint64_t sequence)
    : at_(at), memory_(memory), group_(group), here_(std::move(here)), what_(what), sequence_(sequence) {}

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
  bool in_place = what_.input.defined() && what_.output.defined() &&
                  what_.input.bytes().data() == what_.output.bytes().data();
  buffer_place input_place, output_place;
  if (which != exposed::output && what_.input.defined()) {
    input_ = reachable(what_.input);
    if (input_.bytes().data() != what_.input.bytes().data()) copy_elements(what_.input, input_);
    input_place = expose(input_, input_reach_);
  }
  if (which != exposed::input && what_.output.defined()) {
    output_ = in_place && input_.defined() ? input_ : reachable(what_.output);
    output_place = in_place && input_.defined() ? input_place : expose(output_, output_reach_);
  }
  for (int to = 0; to < num_members(); ++to) {
    if (to == member()) continue;
    auto& note = begin_note(to);
    note.input = input_place;
    note.output = output_place;
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

buffer_place meeting::expose(const tensor& elements, in_reach& guard) {
  guard = in_reach(memory_, elements.bytes());
  return memory_.place_of(elements.bytes());
}

tensor meeting::reachable(const tensor& wanted) {
  if (!wanted.defined() || memory_.place_of(wanted.bytes()).is_reachable()) return wanted;
  return memory_.empty(wanted.extents(), wanted.type());
}

const std::byte* meeting::input_of(int from) {
  if (from == member()) return input_.bytes().data();
  return memory_.find(from, at_.note(member(), from, sequence_).input);
}

std::byte* meeting::output_of(int to) {
  if (to == member()) return output_.bytes().data();
  return memory_.find(to, at_.note(member(), to, sequence_).output);
}

void meeting::take_output() {
  auto wanted = what_.output;
  if (wanted.defined() && output_.bytes().data() != wanted.bytes().data()) copy_elements(output_, wanted);
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
