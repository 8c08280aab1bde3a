#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troupe/messaging/authenticator.hpp"
#include "troupe/messaging/control_address.hpp"
#include "troupe/messaging/frame.hpp"
#include "troupe/messaging/handshake.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::messaging {

/// The sending end of a control connection. It connects, shakes hands (messaging/handshake.hpp), introduces
/// this process, and sends frames with the connection's own key. Never blocks: unsent bytes are kept.
///
/// Until the handshake is done, failed attempts are repeated for a while (`attempts_go_on_for`): the receiver
/// may have closed the connection because of too many unauthenticated peers, or descriptors may have run out
/// for a while. A refused connection means that the peer has ended, which is a failure at once.
class outgoing_stream {
 public:
  struct ends {
    int own_rank = 0;
    process_id own{};
    int peer_rank = 0;
    control_address peer;
    std::span<const std::byte> secret;  ///< outlives the stream
    std::chrono::milliseconds attempts_go_on_for{0};
  };
  /// Begins to connect.
  explicit outgoing_stream(ends between);

  /// Negative: none now, until progress() makes the next attempt.
  int socket() const { return socket_.get(); }
  /// The epoll events to call progress() for.
  std::uint32_t wanted_events() const;
  void send(frame_kind kind, std::uint64_t generation, std::span<const std::byte> body);
  /// Does what can be done now. `hung_up`: the peer has closed its end.
  void progress(bool hung_up);
  bool all_sent() const { return key_ && kept_.empty(); }
  /// Of what was sent: bytes that the socket has not taken, or that wait for the handshake.
  std::size_t unsent_bytes() const { return num_unsent_; }
  /// Whether the handshake is done.
  bool was_made() const { return key_.has_value(); }
  /// Why the connection broke, or nothing.
  const std::optional<std::string>& failure() const { return failure_; }

 private:
  using clock = std::chrono::steady_clock;
  struct message {
    frame_kind kind;
    std::uint64_t generation;
    std::vector<std::byte> body;
  };

  void attempt();
  void shake_hands();
  void answer();
  void establish();
  bool receive(std::size_t size);
  void keep_waiting(message sent);
  void send_frame(frame_kind kind, std::uint64_t generation, std::span<const std::byte> extension,
                  std::span<const std::byte> body);
  void keep_sending();
  std::size_t write(std::span<const std::byte> head, std::span<const std::byte> body);
  void lose(const std::string& cause, int error_number);
  void fail(const std::string& cause);

  const ends ends_;
  const clock::time_point last_attempt_;  ///< after it no attempt to connect starts
  clock::time_point next_attempt_;
  posix::unique_fd socket_;
  std::vector<std::byte> received_;         ///< bytes of the handshake that have come
  std::optional<handshake> handshake_;      ///< once the greeting was answered
  std::optional<frame_authenticator> key_;  ///< once the handshake is done
  std::deque<message> waiting_;             ///< for the end of the handshake
  std::uint64_t sequence_ = 0;
  std::deque<std::vector<std::byte>> kept_;  ///< bytes that the socket did not take
  std::size_t sent_of_first_ = 0;
  std::size_t num_unsent_ = 0;  ///< bytes in waiting_ and kept_
  std::optional<std::string> failure_;
};

}  // namespace troupe::messaging
