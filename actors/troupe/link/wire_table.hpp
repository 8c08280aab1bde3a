#pragma once
#include <caf/message.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "troupe/actor/actor_name.hpp"

namespace troupe::actors::link {

/// one_way: no reply is expected. request: the receiver's answer comes back as a reply with the same number.
enum class message_kind : std::uint8_t { one_way = 1, request = 2, reply = 3 };

/// The head of a message between processes.
struct message_head {
  actor::actor_name to;  ///< of a reply: empty, since `request` names its receiver
  message_kind kind = message_kind::one_way;
  /// Number of the request among those that its sender's process has made of the receiver's process in this
  /// generation, from 1; 0: one_way.
  std::uint64_t request = 0;
  bool operator==(const message_head&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(to, kind, request);
  }
};

/// Requests are numbered up to this; CAF's message ids have flags above.
constexpr std::uint64_t max_request_number = (std::uint64_t{1} << 60) - 1;

struct addressed_message {
  message_head head;
  caf::message content;
};

/// The body of a control frame: type number, head, Cereal encoding of the message's one struct. None if the
/// message's type has no wire format.
std::optional<std::vector<std::byte>> encode_message(const message_head& head, const caf::message& content);

/// Decodes encode_message's form. Throws decode_error for any other bytes.
addressed_message decode_message(std::span<const std::byte> body);

}  // namespace troupe::actors::link
