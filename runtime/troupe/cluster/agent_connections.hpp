#pragma once
#include <chrono>
#include <functional>
#include <list>

#include "troupe/cluster/agent.hpp"
#include "troupe/cluster/agent_connection.hpp"
#include "troupe/messaging/tcp_socket.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::cluster {

/// The agent's listening sockets and the accepted connections. For one thread.
class agent_connections {
 public:
  /// Listens at all addresses that the name has. `options` must outlive it. Throws bad_input naming address
  /// and port.
  /// `warn` may be empty; it is told what is waited for, and what is done otherwise than asked.
  agent_connections(const agent_options& options,
                    const std::function<void(const std::string& message)>& warn);

  std::uint16_t port() const { return listening_.port; }
  auto begin() { return connections_.begin(); }
  auto end() { return connections_.end(); }

  /// Waits for socket events or `wake_fd`, at most one tick. Accepts connections, writes pending output, and
  /// calls `serve` for every readable connection; `serve` must not remove connections.
  void poll(int wake_fd, const std::function<void(agent_connection&)>& serve);
  /// Removes and returns closed connections and those whose handshake or hello takes too long.
  std::list<agent_connection> take_ended();
  void drop(int rank);
  /// Whether the newest accept() failed for lack of descriptors or memory.
  bool out_of_descriptors() const { return out_of_descriptors_; }

 private:
  void accept_some(int listener);
  void make_space_for_unauthenticated();

  const agent_options& options_;
  const messaging::listening listening_;
  std::list<agent_connection> connections_;
  bool accept_paused_ = false;
  bool out_of_descriptors_ = false;
};

}  // namespace troupe::cluster
