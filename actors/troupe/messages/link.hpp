#pragma once
#include <cereal/types/string.hpp>
#include <cstdint>
#include <string>

#include "troupe/actor/message_storage.hpp"

namespace troupe::actors::messages {

/// A link's timer -> itself, delayed: the time limit of a request may be over.
struct check_requests {};

/// The reply of an actor that has nothing to return. Between links only: actors get an empty message.
struct request_done {
  template <class Archive>
  void serialize(Archive&) {}
};

/// The reply to a request that failed. Between links only: actors get a caf::error.
struct request_failed {
  std::uint8_t code = 0;  ///< an actor_error
  /// Whether `text` is an error of the replying actor. Otherwise it says what happened to that actor, whose
  /// name the requester's link adds.
  bool is_of_actor = true;
  std::string text;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(code, is_of_actor, text);
  }
};

/// Link -> supervisor of its process: a message to `rank` could not be sent.
struct link_failed {
  std::uint64_t generation = 0;
  int rank = 0;
  std::string cause;
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::check_requests)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::request_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::request_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::link_failed)
