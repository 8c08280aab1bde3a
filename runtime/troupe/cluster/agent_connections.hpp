#pragma once
#include <chrono>
#include <functional>
#include <list>

#include "troupe/cluster/agent.hpp"
#include "troupe/cluster/agent_connection.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// The agent's listening socket and whoever has come in by it. For one thread.
class agent_connections {
 public:
  /// Listens. `options` must outlive it. Throws bad_input naming address and port.
  explicit agent_connections(const agent_options& options);

  std::uint16_t port() const { return port_; }
  auto begin() { return connections_.begin(); }
  auto end() { return connections_.end(); }

  /// Waits until something happens here or at `wake_fd`, for one tick at most. Lets in who knocks, writes
  /// what waits, and hands every connection that can be read to `serve`, which removes none.
  void poll(int wake_fd, const std::function<void(agent_connection&)>& serve);
  /// Removes those that are closed, and strangers that take too long to say who they are. Returns them.
  std::list<agent_connection> take_ended();
  void drop(int rank);
  /// Whether the newest attempt to let somebody in failed for want of descriptors or memory.
  bool out_of_descriptors() const { return out_of_descriptors_; }

 private:
  void accept_some();
  void make_room_for_stranger();

  const agent_options& options_;
  unique_fd listener_;
  std::uint16_t port_;
  std::list<agent_connection> connections_;
  bool accept_paused_ = false;
  bool out_of_descriptors_ = false;
};

}  // namespace troupe
