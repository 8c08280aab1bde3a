#include <cstring>
#include <utility>

#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/share.hpp"
#include "troupe/collective/post_mortem.hpp"

namespace troupe::direct {
namespace {

// The sender's note waits at the receiver, who reads the sender's tensor.
algorithm send_large(board& at, member_memory& memory, [[maybe_unused]] presence here,
                     const collective_operation& what, std::uint64_t sequence) {
  if (sequence > board::sends_in_flight)
    co_await until([&] { return at.is_taken(what.peer, sequence - board::sends_in_flight); });
  auto& note = at.send_note(what.peer, at.member(), sequence);
  note.signature = what.signature;
  auto bytes = what.input.bytes();
  auto reachable = what.input;
  if (!memory.place_of(bytes).is_reachable()) {
    reachable = memory.empty(what.input.extents(), what.input.type());
    copy_bytes(bytes.data(), reachable.bytes().data(), bytes.size(), store_for_fetched(bytes.size()));
  }
  in_reach guard(memory, std::as_const(reachable).bytes());
  note.input = memory.place_of(std::as_const(reachable).bytes());
  note.sequence.store(sequence, std::memory_order_release);
  at.ring();
  co_await until([&] { return at.is_taken(what.peer, sequence); });
}

// What is small goes with the note, and the sender need not wait.
algorithm send_small(board& at, [[maybe_unused]] presence here, const collective_operation& what,
                     std::uint64_t sequence) {
  if (sequence > board::sends_in_flight)
    co_await until([&] { return at.is_taken(what.peer, sequence - board::sends_in_flight); });
  auto& note = at.send_note(what.peer, at.member(), sequence);
  note.signature = what.signature;
  auto bytes = what.input.bytes();
  auto* place = bytes.size() <= sizeof note.first_bytes ? note.first_bytes
                                                        : at.sent_bytes(what.peer, at.member(), sequence);
  if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
  note.sequence.store(sequence, std::memory_order_release);
  at.ring();
  at.look_at_taken(what.peer, sequence);
}

}  // namespace

algorithm send(board& at, member_memory& memory, presence here, const collective_operation& what,
               std::uint64_t sequence) {
  return what.input.size_bytes() <= board::small_bytes
             ? send_small(at, std::move(here), what, sequence)
             : send_large(at, memory, std::move(here), what, sequence);
}

namespace {

const std::byte* bytes_sent(board& at, member_memory& memory, int from, const call_note& note,
                            std::size_t size_bytes) {
  if (size_bytes <= sizeof note.first_bytes) return note.first_bytes;
  if (size_bytes > board::small_bytes) return memory.find(from, note.input);
  return at.sent_bytes(at.member(), from, note.sequence.load(std::memory_order_relaxed));
}

}  // namespace

algorithm receive(board& at, member_memory& memory, [[maybe_unused]] presence here,
                  const group_description& group, const collective_operation& what, std::uint64_t sequence) {
  auto& note = at.send_note(at.member(), what.peer, sequence);
  co_await until([&] { return note.sequence.load(std::memory_order_acquire) == sequence; });
  if (note.signature.type != what.signature.type || note.signature.count != what.signature.count)
    throw post_mortem(group).wrong_message({what.signature, sequence}, what.peer, note.signature);
  auto output = what.output_bytes();
  copy_bytes(bytes_sent(at, memory, what.peer, note, output.size()), output.data(), output.size(),
             store_for_fetched(output.size()));
  at.take_send(what.peer, sequence);
}

}  // namespace troupe::direct
