#include <algorithm>
#include <cstring>
#include <utility>

#include "troupe/collective/diagnostics/failure_diagnosis.hpp"
#include "troupe/collective/shm/algorithms.hpp"

// all_gather, broadcast, gather, scatter, all_to_all, barrier, send and receive. n: members, S: bytes of the
// call.
//
// Small: each member posts inline what another one needs, and copies what it was posted.
//
// Large: in all_gather and gather each member writes its part to the outputs of those that need it. In
// broadcast, scatter and all_to_all each member reads what it needs from the others' inputs. Either way a
// byte is copied once for each member that needs it, and all members copy at the same time.

// send and receive. The sender fills a send slot, which waits for the receiver. A pair has
// max_sends_in_flight slots in each direction, so send k first waits until send k - max_sends_in_flight has
// been received.
//
// Small: the elements are inline in the slot, and the send ends at once. Two copies.
// Large: the slot names the sender's tensor, and the send ends when the receiver has copied it. One copy, or
// two where the tensor is in private memory.

namespace troupe::collective::shm {

namespace {

std::size_t part_offset(const shm_call& call, int member) {
  return static_cast<std::size_t>(part_begin(call.operation(), member)) * call.element_bytes();
}
std::size_t part_bytes(const shm_call& call, int member) {
  return static_cast<std::size_t>(part_of(call.operation(), member).count) * call.element_bytes();
}
/// Of operations whose parts are equal.
std::size_t equal_part_bytes(const shm_call& call) {
  return static_cast<std::size_t>(call.operation().parts[0]) * call.element_bytes();
}

algorithm all_gather_small(shm_call call) {
  auto own = call.operation().input.bytes();
  call.post_inline([&](int) { return own; });
  auto output = call.operation().output_bytes();
  copy_bytes(own.data(), output.data() + part_offset(call, call.member()), own.size(), store_kind::cached);
  co_await until([&] { return call.all_arrived(); });
  for (int i = 0; i < call.num_members(); ++i)
    if (i != call.member())
      copy_bytes(call.inline_from(i, part_bytes(call, i)), output.data() + part_offset(call, i),
                 part_bytes(call, i), store_kind::cached);
}

// Each member writes its part to all outputs block by block, so the part is read from memory once. No other
// member needs the input, so only the output is exposed.
algorithm all_gather_large(shm_call call) {
  call.post_tensors(exposure::output);
  co_await until([&] { return call.all_arrived(); });
  call.begin_access();
  auto own = call.operation().input.bytes();
  auto store = store_for(own.size() * static_cast<std::size_t>(call.num_members()));
  constexpr std::size_t block = 16384;  // stays in the innermost cache while it is written n times
  for (std::size_t first = 0; first < own.size(); first += block) {
    auto size = std::min(block, own.size() - first);
    for (int i = 0; i < call.num_members(); ++i) {
      auto to = (call.member() + i) % call.num_members();
      auto* target = call.output_of(to) + part_offset(call, call.member()) + first;
      if (target != own.data() + first) copy_bytes(own.data() + first, target, size, store);
    }
  }
  call.finish_access();
  co_await until([&] { return call.all_finished(); });
  call.copy_output();
}

algorithm broadcast_small(shm_call call) {
  auto root = call.operation().signature.root;
  auto bytes = call.operation().output_bytes();
  call.post_inline([&](int) { return call.member() == root ? bytes : bytes.first(0); });
  co_await until([&] { return call.all_arrived(); });
  if (call.member() != root)
    copy_bytes(call.inline_from(root, bytes.size()), bytes.data(), bytes.size(), store_kind::cached);
}

algorithm broadcast_large(shm_call call) {
  call.post_tensors(exposure::input);
  co_await until([&] { return call.all_arrived(); });
  call.begin_access();
  auto root = call.operation().signature.root;
  auto output = call.operation().output_bytes();
  if (call.member() != root)
    copy_bytes(call.input_of(root), output.data(), output.size(), store_for_fetched(output.size()));
  call.finish_access();
  co_await until([&] { return call.all_finished(); });
}

algorithm gather_small(shm_call call) {
  auto root = call.operation().signature.root;
  auto own = call.operation().input.bytes();
  call.post_inline([&](int to) { return to == root ? own : own.first(0); });
  co_await until([&] { return call.all_arrived(); });
  if (call.member() != root) co_return;
  auto output = call.operation().output_bytes();
  for (int i = 0; i < call.num_members(); ++i)
    copy_bytes(i == root ? own.data() : call.inline_from(i, own.size()), output.data() + part_offset(call, i),
               own.size(), store_kind::cached);
}

algorithm gather_large(shm_call call) {
  call.post_tensors(exposure::output);
  co_await until([&] { return call.all_arrived(); });
  call.begin_access();
  auto own = call.operation().input.bytes();
  auto* output = call.output_of(call.operation().signature.root);
  copy_bytes(own.data(), output + part_offset(call, call.member()), own.size(), store_for(own.size()));
  call.finish_access();
  co_await until([&] { return call.all_finished(); });
  call.copy_output();
}

algorithm scatter_small(shm_call call) {
  auto root = call.operation().signature.root;
  auto size = equal_part_bytes(call);
  auto input = call.operation().input;
  auto part = [&](int to) {
    return std::span(std::as_const(input).bytes()).subspan(static_cast<std::size_t>(to) * size, size);
  };
  call.post_inline([&](int to) { return call.member() == root ? part(to) : std::span<const std::byte>(); });
  co_await until([&] { return call.all_arrived(); });
  auto output = call.operation().output_bytes();
  copy_bytes(call.member() == root ? part(root).data() : call.inline_from(root, size), output.data(), size,
             store_kind::cached);
}

algorithm scatter_large(shm_call call) {
  call.post_tensors(exposure::input);
  co_await until([&] { return call.all_arrived(); });
  call.begin_access();
  auto size = equal_part_bytes(call);
  auto output = call.operation().output_bytes();
  copy_bytes(call.input_of(call.operation().signature.root) + static_cast<std::size_t>(call.member()) * size,
             output.data(), size, store_for_fetched(size));
  call.finish_access();
  co_await until([&] { return call.all_finished(); });
}

algorithm all_to_all_small(shm_call call) {
  auto size = equal_part_bytes(call);
  auto input = std::span<const std::byte>(call.operation().input.bytes());
  auto part = [&](int to) { return input.subspan(static_cast<std::size_t>(to) * size, size); };
  call.post_inline(part);
  co_await until([&] { return call.all_arrived(); });
  auto output = call.operation().output_bytes();
  for (int i = 0; i < call.num_members(); ++i)
    copy_bytes(i == call.member() ? part(i).data() : call.inline_from(i, size),
               output.data() + static_cast<std::size_t>(i) * size, size, store_kind::cached);
}

// Member i begins with the input of member i + 1, so that not all members read the same input at a time.
algorithm all_to_all_large(shm_call call) {
  call.post_tensors(exposure::input);
  co_await until([&] { return call.all_arrived(); });
  call.begin_access();
  auto size = equal_part_bytes(call);
  auto output = call.operation().output_bytes();
  for (int i = 0; i < call.num_members(); ++i) {
    auto from = (call.member() + i + 1) % call.num_members();
    copy_bytes(call.input_of(from) + static_cast<std::size_t>(call.member()) * size,
               output.data() + static_cast<std::size_t>(from) * size, size, store_for_fetched(output.size()));
  }
  call.finish_access();
  co_await until([&] { return call.all_finished(); });
}

}  // namespace

algorithm all_gather(shm_call call) {
  const auto& parts = call.operation().parts;
  auto largest = *std::max_element(parts.begin(), parts.end());
  return is_small(call, largest) ? all_gather_small(std::move(call)) : all_gather_large(std::move(call));
}

algorithm broadcast(shm_call call) {
  return is_small(call, call.operation().signature.count) ? broadcast_small(std::move(call))
                                                          : broadcast_large(std::move(call));
}

algorithm gather(shm_call call) {
  return is_small(call, call.operation().parts[0]) ? gather_small(std::move(call))
                                                   : gather_large(std::move(call));
}

algorithm scatter(shm_call call) {
  return is_small(call, call.operation().parts[0]) ? scatter_small(std::move(call))
                                                   : scatter_large(std::move(call));
}

algorithm all_to_all(shm_call call) {
  return is_small(call, call.operation().parts[0]) ? all_to_all_small(std::move(call))
                                                   : all_to_all_large(std::move(call));
}

algorithm barrier(shm_call call) {
  call.post_inline([](int) { return std::span<const std::byte>(); });
  co_await until([&] { return call.all_arrived(); });
}

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

}  // namespace troupe::collective::shm
