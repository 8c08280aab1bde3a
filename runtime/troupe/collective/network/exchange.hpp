#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "troupe/collective/operation.hpp"

namespace troupe::network {

/// Collectives count their calls together, sends and receives by pair and direction.
enum class lane : std::uint8_t { collectives, between_two };

/// Which message of a pair, in one direction.
struct message_key {
  std::uint64_t sequence = 0;  ///< of the call
  std::uint32_t step = 0;      ///< within the call
  lane of = lane::collectives;
  auto operator<=>(const message_key&) const = default;
};

/// A message on its way: a receive is done when its bytes are there, a send when they may be changed.
class transfer {
 public:
  bool is_done() const { return is_done_; }

 protected:
  bool is_done_ = false;
};

/// Messages between the members of a group. Every message says which call it belongs to, so a message of
/// another call than expected is noticed when it comes. Bytes stay valid until the transfer is done or the
/// exchange has ended. Nothing here blocks.
class exchange {
 public:
  virtual ~exchange() = default;
  /// This member is in call `sequence` of the collectives from now on.
  virtual void begin_call(std::uint64_t sequence, const call_signature& signature) = 0;
  virtual std::shared_ptr<const transfer> post_send(int to, const message_key& key,
                                                    const call_signature& signature,
                                                    std::span<const std::byte> bytes) = 0;
  /// The message is `bytes.size()` long. A key is received once.
  virtual std::shared_ptr<const transfer> post_receive(int from, const message_key& key,
                                                       const call_signature& expected,
                                                       std::span<std::byte> bytes) = 0;
  /// Tells `to` what this member calls; `to` need not expect it.
  virtual void post_note(int to, std::uint64_t sequence, const call_signature& signature) = 0;
};

}  // namespace troupe::network
