#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "troupe/posix/unique_fd.hpp"
#include "troupe/transport/control_address.hpp"
#include "troupe/wire/frame.hpp"

namespace troupe {

/// No control message is longer; what declares itself longer is not read.
constexpr std::size_t longest_control_bytes = std::size_t{64} << 20;

/// The sending end of a control connection. Never blocks: what the socket does not take is kept.
class outgoing_stream {
 public:
  /// `socket` may still be connecting.
  explicit outgoing_stream(unique_fd socket) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }
  void send(std::span<const std::byte> head, std::span<const std::byte> body);
  /// Sends what is kept, and notices how the connection is.
  void flush();
  /// Frames are numbered from 0.
  std::uint64_t next_sequence() { return sequence_++; }
  bool all_sent() const { return kept_.empty(); }
  /// Why the connection broke, or nothing.
  const std::optional<std::string>& failure() const { return failure_; }
  void fail(const std::string& cause) {
    if (!failure_) failure_ = cause;
  }

 private:
  /// How many bytes of the two parts the socket took.
  std::size_t write(std::span<const std::byte> head, std::span<const std::byte> body);

  unique_fd socket_;
  std::uint64_t sequence_ = 0;
  std::deque<std::vector<std::byte>> kept_;
  std::size_t sent_of_first_ = 0;
  std::optional<std::string> failure_;
};

/// The receiving end of a control connection: cuts the bytes into frames.
class incoming_stream {
 public:
  incoming_stream(unique_fd socket, std::uint64_t serial) : socket_(std::move(socket)), serial_(serial) {}

  int socket() const { return socket_.get(); }
  /// Rises with each stream that was accepted.
  std::uint64_t serial() const { return serial_; }
  enum class filling { more, nothing_yet, closed };
  /// Reads a portion of what is there.
  filling fill();

  struct frame {
    std::span<const std::byte> head, body;
  };
  /// The next whole frame, valid until the next call of anything, or nothing yet, or a fault after which the
  /// stream is of no use.
  std::variant<std::optional<frame>, frame_fault> next();

  /// Set once the other side has proved who it is.
  struct sender {
    int rank = 0;
    process_id process{};
    std::uint64_t sequence = 0;  ///< of the last frame
  };
  std::optional<sender> from;

 private:
  unique_fd socket_;
  std::uint64_t serial_;
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;  ///< of what was not returned yet
};

}  // namespace troupe
