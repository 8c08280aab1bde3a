#include <cstring>
#include <utility>

#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/share.hpp"
#include "troupe/collective/post_mortem.hpp"

namespace troupe::direct {

// The sender's note waits at the receiver, who reads the sender's tensor; what is small goes with the note,
// and then the sender need not wait.
algorithm send(board& at, member_memory& memory, const collective_operation& what, std::uint64_t sequence) {
  auto& taken = at.sends_taken(what.peer, at.member());
  co_await until([&] { return taken.load(std::memory_order_acquire) + 1 >= sequence; });
  auto& note = at.send_note(what.peer, at.member());
  note.signature = what.signature;
  auto bytes = what.input.bytes();
  tensor reachable = what.input;
  in_reach guard;
  note.input = {};
  if (bytes.size() <= board::small_bytes) {
    if (!bytes.empty()) std::memcpy(at.sent_bytes(what.peer, at.member()), bytes.data(), bytes.size());
  } else {
    if (!memory.place_of(bytes).is_reachable()) {
      reachable = memory.empty(what.input.extents(), what.input.type());
      copy_bytes(bytes.data(), reachable.bytes().data(), bytes.size(), store_for_fetched(bytes.size()));
    }
    guard = in_reach(memory, std::as_const(reachable).bytes());
    note.input = memory.place_of(std::as_const(reachable).bytes());
  }
  note.sequence.store(sequence, std::memory_order_release);
  at.ring();
  if (bytes.size() > board::small_bytes)
    co_await until([&] { return taken.load(std::memory_order_acquire) >= sequence; });
}

algorithm receive(board& at, member_memory& memory, const group_description& group,
                  const collective_operation& what, std::uint64_t sequence) {
  auto& note = at.send_note(at.member(), what.peer);
  co_await until([&] { return note.sequence.load(std::memory_order_acquire) == sequence; });
  if (note.signature.type != what.signature.type || note.signature.count != what.signature.count)
    throw post_mortem(group).wrong_message({what.signature, sequence}, what.peer, note.signature);
  auto output = what.output;
  const auto* from =
      note.input.is_reachable() ? memory.find(what.peer, note.input) : at.sent_bytes(at.member(), what.peer);
  copy_bytes(from, output.bytes().data(), output.size_bytes(), store_for_fetched(output.size_bytes()));
  at.sends_taken(at.member(), what.peer).store(sequence, std::memory_order_release);
  at.ring();
}

}  // namespace troupe::direct
