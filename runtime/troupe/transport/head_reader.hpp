#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "troupe/transport/plane.hpp"
#include "troupe/transport/repeated_head.hpp"
#include "troupe/transport/replay_window.hpp"
#include "troupe/wire/frame.hpp"

namespace troupe {

/// Reads the heads of the tensors that come to this node, whole or repeated.
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
    // The last small tensor whose head was whole, if there was one.
    std::optional<std::uint64_t> sequence = {};
    tensor_tag tag = {};
    std::vector<std::byte> layout = {};
    std::size_t body_bytes = 0;
  };
  std::span<const std::byte> read_repeated(std::span<const std::byte> head, std::size_t body_bytes,
                                           tensor_arrival& arrival) const;
  std::span<const std::byte> read_whole(std::span<const std::byte> head, std::size_t body_bytes,
                                        tensor_arrival& arrival);
  bool is_authentic(const frame_header& header, std::span<const std::byte> head,
                    const authentication_code& code);
  bool is_authentic(sender& by, std::uint64_t sequence, std::span<const std::byte> head,
                    const authentication_code& code) const;

  const plane_settings& settings_;
  const receiver_nonce own_;
  std::map<std::uint32_t, sender> senders_;
};

}  // namespace troupe
