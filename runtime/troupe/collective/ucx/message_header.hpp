#pragma once
#include <cstdint>
#include <type_traits>

#include "troupe/collective/network/exchange.hpp"

namespace troupe {

enum class message_kind : std::uint8_t {
  hello,      ///< the first one of a pair
  elements,   ///< of a call
  note,       ///< what the sender calls
  question,   ///< what do you do? of a member whose call did not end in time
  answer,     ///< to it
  giving_up,  ///< the sender's group has failed
  leaving     ///< the sender's group has ended, its calls are done
};

/// At the front of every message between members. Plain bytes, in the order of the machine.
struct message_header {
  std::uint64_t group = 0;     ///< a random number of the group's own
  std::uint64_t sequence = 0;  ///< of the call, else what the sender is in
  call_signature signature;
  std::uint32_t step = 0;
  std::int32_t from = 0;  ///< member
  message_kind kind = message_kind::hello;
  network::lane lane = network::lane::collectives;
  std::uint16_t unused = 0;
  std::uint32_t unused_either = 0;

  network::message_key key() const { return {sequence, step, lane}; }
};
static_assert(std::is_trivially_copyable_v<message_header> && sizeof(message_header) == 56);

}  // namespace troupe
