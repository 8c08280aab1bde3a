#include <cstring>
#include <utility>

#include "troupe/collective/diagnostics/failure_diagnosis.hpp"
#include "troupe/collective/shm/algorithms.hpp"

// The sender fills a send slot, which waits for the receiver. A pair has max_sends_in_flight slots in each
// direction, so send k first waits until send k - max_sends_in_flight has been received.
//
// Small: the elements are inline in the slot, and the send ends at once. Two copies.
// Large: the slot names the sender's tensor, and the send ends when the receiver has copied it. One copy, or
// two where the tensor is in private memory.

namespace troupe::shm {
namespace {

bool has_free_slot(control_block& block, const collective_operation& what, std::uint64_t sequence) {
  return sequence <= control_block::max_sends_in_flight ||
         block.is_received(what.peer, sequence - control_block::max_sends_in_flight);
}

algorithm send_large(control_block& block, member_memory& memory, [[maybe_unused]] call_scope scope,
                     const collective_operation& what, std::uint64_t sequence) {
  co_await until([&] { return has_free_slot(block, what, sequence); });
  auto& slot = block.send_slot(what.peer, block.member(), sequence);
  slot.signature = what.signature;
  auto bytes = what.input.bytes();
  auto reachable = what.input;
  if (!memory.locate(bytes).is_reachable()) {
    reachable = memory.empty(what.input.shape(), what.input.dtype());
    copy_bytes(bytes.data(), reachable.bytes().data(), bytes.size(), store_for_fetched(bytes.size()));
  }
  exposed_range guard(memory, std::as_const(reachable).bytes());
  slot.input = memory.locate(std::as_const(reachable).bytes());
  slot.sequence.store(sequence, std::memory_order_release);
  block.notify();
  co_await until([&] { return block.is_received(what.peer, sequence); });
}

algorithm send_small(control_block& block, [[maybe_unused]] call_scope scope,
                     const collective_operation& what, std::uint64_t sequence) {
  co_await until([&] { return has_free_slot(block, what, sequence); });
  auto& slot = block.send_slot(what.peer, block.member(), sequence);
  slot.signature = what.signature;
  auto bytes = what.input.bytes();
  auto* place = bytes.size() <= sizeof slot.first_bytes
                    ? slot.first_bytes
                    : block.sent_inline_bytes(what.peer, block.member(), sequence);
  if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
  slot.sequence.store(sequence, std::memory_order_release);
  block.notify();
  block.refresh_received(what.peer, sequence);
}

/// Where the `size_bytes` bytes of a send are.
const std::byte* sent_bytes(control_block& block, member_memory& memory, int from, const call_slot& slot,
                            std::size_t size_bytes) {
  if (size_bytes <= sizeof slot.first_bytes) return slot.first_bytes;
  if (size_bytes > control_block::max_inline_bytes) return memory.resolve(from, slot.input);
  return block.sent_inline_bytes(block.member(), from, slot.sequence.load(std::memory_order_relaxed));
}

}  // namespace

algorithm send(control_block& block, member_memory& memory, call_scope scope,
               const collective_operation& what, std::uint64_t sequence) {
  return what.input.size_bytes() <= control_block::max_inline_bytes
             ? send_small(block, std::move(scope), what, sequence)
             : send_large(block, memory, std::move(scope), what, sequence);
}

algorithm receive(control_block& block, member_memory& memory, [[maybe_unused]] call_scope scope,
                  const group_description& group, const collective_operation& what, std::uint64_t sequence) {
  auto& slot = block.send_slot(block.member(), what.peer, sequence);
  co_await until([&] { return slot.sequence.load(std::memory_order_acquire) == sequence; });
  if (slot.signature.type != what.signature.type || slot.signature.count != what.signature.count)
    throw failure_diagnosis(group).wrong_message({what.signature, sequence}, what.peer, slot.signature);
  auto output = what.output_bytes();
  copy_bytes(sent_bytes(block, memory, what.peer, slot, output.size()), output.data(), output.size(),
             store_for_fetched(output.size()));
  block.acknowledge_send(what.peer, sequence);
}

}  // namespace troupe::shm
