#include "troupe/collective/shm/shm_call.hpp"

#include <cstring>

#include "troupe/collective/diagnostics/failure_diagnosis.hpp"

namespace troupe::collective::shm {

call_scope::call_scope(std::vector<running_call>& all, control_block& block, const collective_operation& what,
                       std::uint64_t sequence)
    : all_(&all), block_(block), call_{&what, sequence} {
  all.push_back(call_);
  if (is_collective()) block_.enter(sequence, what.signature);
}

void call_scope::end() {
  std::erase_if(*all_, [&](const running_call& each) { return each.what == call_.what; });
  // A call that failed is not left; its group has been aborted.
  if (is_collective() && !block_.is_aborted()) block_.leave(call_.sequence);
}

/// The slot is free: all members have entered the call before this one, so no member still reads the slot's
/// last contents, which are of the call before that.
call_slot& shm_call::begin_slot(int to) {
  auto& slot = block_.slot(to, member(), sequence_);
  slot.signature = operation_.signature;
  return slot;
}

void shm_call::post_slot(int to, std::span<const std::byte> bytes) {
  auto& slot = begin_slot(to);
  auto* place = bytes.size() <= sizeof slot.first_bytes ? slot.first_bytes
                                                        : block_.inline_bytes(to, member(), sequence_);
  if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
  slot.sequence.store(sequence_, std::memory_order_release);
}

const std::byte* shm_call::inline_from(int from, std::size_t size_bytes) const {
  auto& slot = block_.slot(member(), from, sequence_);
  return size_bytes <= sizeof slot.first_bytes ? slot.first_bytes
                                               : block_.inline_bytes(member(), from, sequence_);
}

void shm_call::post_tensors(exposure which) {
  tensors_ = std::make_unique<exposed_tensors>(memory_, operation_, which);
  for (int to = 0; to < num_members(); ++to) {
    if (to == member()) continue;
    auto& slot = begin_slot(to);
    slot.input = tensors_->input_location();
    slot.output = tensors_->output_location();
    slot.sequence.store(sequence_, std::memory_order_release);
  }
  block_.notify();
}

void shm_call::begin_access() {
  block_.begin_access();
  throw_if_aborted(block_, group_);
}

void shm_call::finish_access() {
  block_.end_access();
  block_.finish_phase();
}

const std::byte* shm_call::input_of(int from) {
  if (from == member()) return tensors_->input();
  return memory_.resolve(from, block_.slot(member(), from, sequence_).input);
}

std::byte* shm_call::output_of(int to) {
  if (to == member()) return tensors_->output();
  return memory_.resolve(to, block_.slot(member(), to, sequence_).output);
}

bool shm_call::all_arrived() {
  for (; num_arrived_ < num_members(); ++num_arrived_) {
    if (num_arrived_ == member()) continue;
    const auto& slot = block_.slot(member(), num_arrived_, sequence_);
    if (slot.sequence.load(std::memory_order_acquire) != sequence_) return false;
    if (slot.signature != operation_.signature)
      throw failure_diagnosis(group_).mismatch({operation_.signature, sequence_}, num_arrived_,
                                               slot.signature);
  }
  return true;
}

void throw_if_aborted(const control_block& block, const group_description& group) {
  if (!block.is_aborted()) return;
  auto info = block.aborted_by();
  failure_report report{
      .sequence = info.sequence, .failure = info.kind, .failed_ranks = info.ranks, .cause = info.cause};
  throw failure_diagnosis(group).aborted_by(info.member, report);
}

}  // namespace troupe::collective::shm
