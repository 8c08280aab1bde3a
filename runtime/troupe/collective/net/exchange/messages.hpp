#pragma once
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "troupe/collective/calls/operation.hpp"

namespace troupe::collective::net {

/// Which counter a message's call is numbered by: one for all collectives, one for each pair and direction.
enum class channel : std::uint8_t { collectives, point_to_point };

/// Identifies a message from one member to another.
struct message_key {
  std::uint64_t sequence = 0;  ///< number of the call
  std::uint32_t step = 0;      ///< which message of the call
  net::channel channel = net::channel::collectives;
  auto operator<=>(const message_key&) const = default;
};

/// A message in flight. A send is done when its bytes may be changed, a receive when its bytes are complete.
class transfer {
 public:
  /// From any thread.
  /// Sequentially consistent, since a thread looks at it after it has announced its sleep.
  bool is_done() const { return is_done_; }

 protected:
  std::atomic<bool> is_done_ = false;
};

/// Exchanges messages between the members of a group. Every message names the call it belongs to, so that a
/// message of a different call is detected when it arrives. Bytes stay valid until their transfer is done or
/// the exchange has ended. Nothing here blocks. Used by one thread at a time.
class message_exchange {
 public:
  virtual ~message_exchange() = default;
  /// This member enters collective call `sequence`.
  virtual void begin_call(std::uint64_t sequence, const call_signature& signature) = 0;
  virtual std::shared_ptr<const transfer> post_send(int to, const message_key& key,
                                                    const call_signature& signature,
                                                    std::span<const std::byte> bytes) = 0;
  /// The message has `bytes.size()` bytes. A key is received once.
  virtual std::shared_ptr<const transfer> post_receive(int from, const message_key& key,
                                                       const call_signature& expected,
                                                       std::span<std::byte> bytes) = 0;
  /// Tells `to` which call this member makes. `to` need not expect it.
  virtual void post_call_notice(int to, std::uint64_t sequence, const call_signature& signature) = 0;
};

enum class message_kind : std::uint8_t {
  hello,           ///< the sender makes the group
  ready,           ///< it has a hello of each other member
  elements,        ///< carries elements of a call
  call_notice,     ///< which call the sender makes
  report_request,  ///< asks for the receiver's failure report, after a time-out
  report,          ///< the reply: an encoded failure_report
  failure,         ///< the sender's group has failed: an encoded failure_report
  leaving          ///< the sender has ended the group normally
};

/// The first bytes of every message between members, in the byte order of the machine.
struct message_header {
  std::uint64_t group = 0;     ///< its number (network_fabric::number_of)
  std::uint64_t sequence = 0;  ///< of the call the message belongs to, else of the sender's newest call
  call_signature signature;
  std::uint32_t step = 0;
  std::int32_t from = 0;  ///< member index of the sender
  message_kind kind = message_kind::hello;
  net::channel channel = net::channel::collectives;
  std::uint16_t unused = 0;
  std::uint32_t num_ends = 0;  ///< how often the sender has ended its connections before (network_fabric)

  message_key key() const { return {sequence, step, channel}; }
};
static_assert(std::is_trivially_copyable_v<message_header> && sizeof(message_header) == 56);

}  // namespace troupe::collective::net
