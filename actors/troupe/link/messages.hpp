#pragma once
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/message.hpp>

#include "troupe/actor/actor_name.hpp"

namespace troupe {

/// Proxy -> link: send this message to the named actor of the remote node.
struct outbound {
  actor_name to;
  caf::message content;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::outbound)
