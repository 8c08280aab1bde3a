#pragma once
#include <cstdint>
#include <map>
#include <span>

#include "troupe/messaging/frame.hpp"
#include "troupe/transport/data_plane/replay_window.hpp"
#include "troupe/transport/plane.hpp"

namespace troupe::transport {

/// Decodes and authenticates the headers of tensors that arrive at this process.
class header_reader {
 public:
  /// `settings` must outlive it.
  header_reader(const plane_settings& settings, const receiver_nonce& own) : settings_(settings), own_(own) {}

  /// Decodes any bytes into `arrival`, except for its value. Returns the encoded layout of the value, or no
  /// bytes if the header is not authentic or not for this process.
  std::span<const std::byte> read(std::span<const std::byte> head, std::size_t body_bytes,
                                  tensor_arrival& arrival);

 private:
  /// A peer's connection to this process, in the generation in which it sent last.
  struct sender {
    std::uint64_t generation;
    messaging::authentication_code code;
    messaging::frame_authenticator key;  ///< of headers with a code of their own
    replay_window seen;                  ///< the sequence numbers of the headers that have come
  };
  bool is_authentic(const messaging::frame_header& header, std::span<const std::byte> head,
                    const messaging::authentication_code& code);
  bool is_authentic(sender& from, std::uint64_t sequence, std::span<const std::byte> head,
                    const messaging::authentication_code& code) const;

  const plane_settings& settings_;
  const receiver_nonce own_;
  std::map<std::uint32_t, sender> senders_;
};

}  // namespace troupe::transport
