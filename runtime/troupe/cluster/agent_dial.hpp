#pragma once
#include "troupe/cluster/agent_client.hpp"
#include "troupe/messaging/sealed_channel.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::cluster {

/// A connection after the handshake and an accepted hello.
struct authenticated_connection {
  posix::unique_fd socket;
  messaging::sealed_channel channel;
  std::vector<std::byte> received;  ///< bytes read beyond the reply, not decoded yet
};

/// Connects to the agent, retrying until the deadline, performs the handshake and sends hello. Errors as
/// connect_agent.
authenticated_connection dial_agent(const agent_client_options& options);

}  // namespace troupe::cluster
