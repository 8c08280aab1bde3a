#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "troupe/messaging/handshake.hpp"

namespace troupe::messaging {

/// Bytes that are no frame of this connection: too long, forged, repeated or out of order.
class bad_frame : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Turns messages into authenticated frames and back, one object for each connection.
///
/// A frame is: body length (4 bytes, little-endian), authentication code (16 bytes), body. The code is a
/// BLAKE2b keyed for this connection and direction over sequence number, length and body; the sequence number
/// is counted on both sides and not sent.
class sealed_channel {
 public:
  /// The largest message of a member: an address, a reason.
  static constexpr std::size_t max_from_client = 1 << 16;
  /// The largest message of the agent, which contains one of every member.
  static constexpr std::size_t max_from_agent = 1 << 28;
  static constexpr std::size_t code_bytes = 16;
  static constexpr std::size_t header_bytes = 4 + code_bytes;

  /// The end of the channel that `self` has: members initiate, the agent responds.
  sealed_channel(handshake_role self, const handshake& keys);

  /// Appends the next frame to `out`. std::invalid_argument for a body over the limit.
  void seal(std::span<const std::byte> body, std::vector<std::byte>& out);
  /// Removes the next frame from the front of `received` and returns its body; empty if it is not complete
  /// yet. Throws bad_frame; the connection must be closed then.
  std::optional<std::vector<std::byte>> open(std::vector<std::byte>& received);

 private:
  frame_key sending_, receiving_;
  std::size_t max_sent_bytes_, max_received_bytes_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace troupe::messaging
