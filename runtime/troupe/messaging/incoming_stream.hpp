#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "troupe/messaging/authenticator.hpp"
#include "troupe/messaging/control_address.hpp"
#include "troupe/messaging/frame.hpp"
#include "troupe/messaging/handshake.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::messaging {

/// The largest control message. Frames that declare a larger size are refused unread.
constexpr std::size_t max_control_bytes = std::size_t{64} << 20;

/// The receiving end of a control connection: shakes hands, then cuts the bytes into frames. Before the other
/// end has proved that it knows the secret, no more than reply_bytes are read.
class incoming_stream {
 public:
  using clock = std::chrono::steady_clock;

  /// Sends the greeting. `secret` must outlive it.
  incoming_stream(posix::unique_fd socket, std::span<const std::byte> secret);

  int socket() const { return socket_.get(); }
  clock::time_point opened() const { return opened_; }
  enum class filling { more, nothing_yet, closed };
  /// Reads a portion of the available bytes.
  filling fill();
  /// Checks the reply once it is complete, and sends the verdict. False: the other end does not know the
  /// secret.
  bool shake_hands();
  bool is_authenticated() const { return key_.has_value(); }
  /// The key of the other end's frames. Only once it is authenticated.
  const frame_authenticator& key() const { return *key_; }

  struct frame {
    std::span<const std::byte> head, body;
  };
  /// The next complete frame, valid until the next call of any function; nothing if none is complete or the
  /// other end is not authenticated; or a fault, after which the stream must be closed.
  std::variant<std::optional<frame>, frame_fault> next();

  /// Set once the other end has introduced itself.
  struct sender {
    int rank = 0;
    process_id process{};
    std::uint64_t sequence = 0;  ///< number of the newest frame
  };
  std::optional<sender> from;

 private:
  void send(std::span<const std::byte> bytes) const;

  posix::unique_fd socket_;
  clock::time_point opened_ = clock::now();
  handshake_responder responder_;
  std::optional<frame_authenticator> key_;
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;  ///< of the bytes not yet returned as frames
};

}  // namespace troupe::messaging
