#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "troupe/cluster/agent.hpp"
#include "troupe/cluster/membership.hpp"

namespace troupe::cluster {

struct agent_client_options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 29500;
  std::vector<std::byte> secret;
  int rank = 0;
  int world_size = 1;
  std::uint32_t incarnation = 0;
  std::chrono::milliseconds heartbeat = member_heartbeat;
  /// An agent that sends no heartbeat for this time counts as lost. Long, because a launcher may be suspended
  /// for a while (Ctrl-Z).
  std::chrono::milliseconds agent_timeout = std::chrono::seconds(60);
  /// For reaching the agent and finishing the handshake; the agent may start after this process.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(30);
  /// Told once, on the connecting thread, what is waited for that may never come: an address of the agent's
  /// name. May be empty.
  std::function<void(const std::string& what)> on_waiting = nullptr;
};

/// Connects to the job's agent, proves the secret, and starts the client's thread, which also sends
/// heartbeats. `events` must outlive it. Throws bad_input when the agent refuses (wrong secret, other world
/// size, rank taken) and system_failure or bad_input naming host and port when it cannot be reached in time.
/// If the agent disappears later, on_job_failed is called.
std::unique_ptr<membership> connect_agent(const agent_client_options& options, membership_events& events);

}  // namespace troupe::cluster
