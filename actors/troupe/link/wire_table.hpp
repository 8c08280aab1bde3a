#pragma once
#include <caf/message.hpp>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "troupe/actor/actor_name.hpp"

namespace troupe {

/// A message between nodes, with its receiver's name.
struct addressed_message {
  actor_name to;
  caf::message content;
};

/// The body of a control frame: type number, receiver's name, Cereal encoding of the message's one struct.
/// None if the message's type has no wire format.
std::optional<std::vector<std::byte>> encode_message(const actor_name& to, const caf::message& content);

/// Decodes encode_message's form. Throws decode_error for any other bytes.
addressed_message decode_message(std::span<const std::byte> body);

}  // namespace troupe
