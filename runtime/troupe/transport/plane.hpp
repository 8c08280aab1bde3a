#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "troupe/messaging/authenticator.hpp"
#include "troupe/transport/counters.hpp"
#include "troupe/transport/send_delay.hpp"
#include "troupe/transport/tensor_header.hpp"

namespace troupe::transport {

/// Settings and counters that both planes of a process share. They outlive the planes.
struct plane_settings {
  int rank = 0;
  std::vector<std::byte> secret;
  messaging::frame_authenticator key;
  bool verify_tensors = false;
  /// Tensors go through memory that only this user's processes can access, so their headers carry the code of
  /// the connection, which is cheap to compare. Otherwise each header has an authentication code of its own.
  bool heads_are_private = false;
  transport_counters counters;
  send_delay_ptr delay = nullptr;
  int world_size = 1;
  std::string connection_advice = {};  ///< follows the cause of a connection that cannot be made
};

/// How long a control connection may take to be made and introduced. At the start of a job all members
/// connect to each other at once, and the cores of a host have the handshakes of all its processes to do.
/// With 200 processes on two cores that takes many seconds.
constexpr std::chrono::milliseconds connection_timeout(int world_size) {
  return std::chrono::seconds(5) + world_size * std::chrono::milliseconds(250);
}

struct control_arrival {
  int from_rank = 0;
  std::uint64_t generation = 0;
  std::vector<std::byte> body;
};

/// A member has ended all generations before `begun`.
struct generation_notice {
  int from_rank = 0;
  std::uint64_t begun = 0;
};

struct tensor_arrival {
  int from_rank = 0;
  tensor_tag tag;
  tensor_header_options options;
  tensor value;
  peer_counters* counted = nullptr;  ///< of the sender; null: it is no member of the generation
};

/// A failure of the connection with a peer.
struct peer_failure {
  int rank = 0;
  std::string cause;
};

}  // namespace troupe::transport
