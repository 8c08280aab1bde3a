#pragma once
#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "troupe/cluster/agent_messages.hpp"
#include "troupe/messaging/sealed_channel.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::cluster {

/// The agent's end of one connection: handshake, frames and buffers. Before the handshake has succeeded only
/// a few bytes are buffered.
class agent_connection {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Sends the greeting. `secret` must outlive it.
  agent_connection(posix::unique_fd socket, std::span<const std::byte> secret, time_point now);

  int fd() const { return socket_.get(); }
  bool authenticated() const { return channel_.has_value(); }
  time_point opened() const { return opened_; }
  /// No more messages come out of it and none can be sent.
  bool closed() const { return closed_ || peer_closed_; }
  /// The agent still accepts messages from it; those sent before the peer closed count.
  bool listens() const { return !closed_ && !finishing_; }
  bool wants_read() const { return listens() && !peer_closed_; }
  bool wants_write() const { return !closed() && !out_.empty(); }
  /// Stops reading, and closes the connection once all pending output is written.
  void finish();
  void close() { closed_ = true; }

  /// Reads what has arrived. Returns the messages; a bad frame or a wrong proof closes the connection.
  std::vector<agent_wire::client_message> read();
  void send(const agent_wire::agent_message& message);
  void write();

  /// The member at the other end, from its hello; none before.
  std::optional<agent_wire::hello> peer;

 private:
  void read_reply();
  std::vector<agent_wire::client_message> read_frames();

  posix::unique_fd socket_;
  time_point opened_;
  messaging::handshake_responder responder_;
  std::optional<messaging::sealed_channel> channel_;
  std::vector<std::byte> received_, out_;
  bool finishing_ = false;
  bool closed_ = false;
  bool peer_closed_ = false;
  bool unwritable_ = false;
};

}  // namespace troupe::cluster
