#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "troupe/transport/plane.hpp"

namespace troupe {

/// Encodes the headers of tensors sent to one peer in one generation.
class head_writer {
 public:
  /// `settings` must outlive it.
  head_writer(const plane_settings& settings, std::uint64_t generation, int to_rank,
              const receiver_nonce& receiver);

  /// Call it in the order of the sends. Throws std::invalid_argument for more than 255 extents.
  void write(const tensor_tag& tag, const std::optional<authentication_code>& body_code, const tensor& value,
             std::vector<std::byte>& head);

 private:
  const plane_settings* settings_;
  std::uint64_t generation_;
  std::uint32_t to_rank_;
  authentication_code code_;  ///< of the connection
  frame_authenticator key_;   ///< of headers with a code of their own
  std::uint64_t sequence_ = 0;
};

}  // namespace troupe
