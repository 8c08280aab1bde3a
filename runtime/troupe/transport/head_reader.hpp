#pragma once
#include <cstdint>
#include <map>
#include <span>

#include "troupe/transport/plane.hpp"
#include "troupe/transport/replay_window.hpp"
#include "troupe/wire/frame.hpp"

namespace troupe {

/// Reads the heads of the tensors that come to this node.
class head_reader {
 public:
  /// `settings` must outlive it.
  head_reader(const plane_settings& settings, const receiver_nonce& own) : settings_(settings), own_(own) {}

  /// Any bytes, into `arrival`, all but its value. Returns the layout of that, or no bytes if the head is not
  /// an authentic one for this node.
  std::span<const std::byte> read(std::span<const std::byte> head, std::size_t body_bytes,
                                  tensor_arrival& arrival);

 private:
  /// A peer's connection to this node, in the generation in which it sent last.
  struct sender {
    std::uint64_t generation;
    authentication_code code;
    frame_authenticator key;  ///< of heads that are not private
    replay_window seen;       ///< of those
  };
  bool is_authentic(const frame_header& header, std::span<const std::byte> head,
                    const authentication_code& code);
  bool is_authentic(sender& by, std::uint64_t sequence, std::span<const std::byte> head,
                    const authentication_code& code) const;

  const plane_settings& settings_;
  const receiver_nonce own_;
  std::map<std::uint32_t, sender> senders_;
};

}  // namespace troupe
