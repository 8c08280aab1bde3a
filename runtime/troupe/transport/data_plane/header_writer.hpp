#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "troupe/transport/plane.hpp"

namespace troupe::transport {

/// Encodes the headers of tensors sent to one peer in one generation.
class header_writer {
 public:
  /// `settings` must outlive it.
  header_writer(const plane_settings& settings, std::uint64_t generation, int to_rank,
                const receiver_nonce& receiver);

  /// Call it in the order of the sends. Throws std::invalid_argument for more than 255 extents.
  /// `body`: the elements that go with the header: those of `value`, or none.
  void write(const tensor_tag& tag, const tensor_header_options& options, const tensor& value,
             std::span<const std::byte> body, std::vector<std::byte>& head);

 private:
  const plane_settings* settings_;
  std::uint64_t generation_;
  std::uint32_t to_rank_;
  messaging::authentication_code code_;  ///< identifies the connection in headers
  messaging::frame_authenticator key_;   ///< of headers with a code of their own
  std::uint64_t sequence_ = 0;
};

}  // namespace troupe::transport
