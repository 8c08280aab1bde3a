#pragma once
#include "troupe/cluster/agent_client.hpp"
#include "troupe/cluster/sealed_channel.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// A connection that the agent has welcomed.
struct agent_line {
  unique_fd socket;
  sealed_channel channel;
  std::vector<std::byte> received;  ///< read ahead, not yet opened
};

/// Reaches the agent, trying again until the deadline, proves the secret and says hello. Errors as
/// connect_agent.
agent_line dial_agent(const agent_client_options& options);

}  // namespace troupe
