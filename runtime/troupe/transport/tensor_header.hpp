#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "troupe/messaging/authenticator.hpp"
#include "troupe/transport/transport.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe::transport {

/// What is needed to allocate a tensor.
struct tensor_layout {
  dtype type = dtype::f32;
  shape extents;
  bool operator==(const tensor_layout&) const = default;
};

/// What a header says of a segment of shared memory (memory_sharing).
enum class segment_report : std::uint8_t {
  holds_elements = 1,  ///< the tensor's elements are in this segment of the sender
  mapped = 2,          ///< the sender reads this segment of the receiver in place
  freed = 3            ///< the sender has freed this segment of its own
};

/// A segment, the offset in it in bytes, the segment's size, and its descriptor in the owner's process. If it
/// was mapped or freed, only the segment counts.
struct shared_place {
  segment_report report = segment_report::holds_elements;
  std::uint64_t segment = 0, offset = 0, segment_bytes = 0;
  std::uint32_t fd = 0;
  bool operator==(const shared_place&) const = default;
};

/// What a header says besides tag and layout.
struct tensor_header_options {
  std::optional<messaging::authentication_code> body_code;  ///< of the elements, if frames are verified
  std::optional<shared_place> place;  ///< where they are, besides in the body or instead
  bool operator==(const tensor_header_options&) const = default;
};

/// The header extension of a tensor frame is the tensor's tag, its layout and the options. Throws
/// std::invalid_argument for more than 255 extents.
std::size_t tensor_header_bytes(const shape& extents, const tensor_header_options& options);
void write_tensor_header(const tensor_tag& tag, dtype type, const shape& extents,
                         const tensor_header_options& options, wire::byte_writer& writer);

/// Decodes a header from any bytes. Returns the part for decode_layout, or no bytes if the header is invalid.
std::span<const std::byte> read_tensor_header(std::span<const std::byte> bytes, tensor_tag& tag,
                                              tensor_header_options& options);
/// Empty if the layout is invalid or its tensor has not `body_bytes` bytes, if any are given.
std::optional<tensor_layout> decode_layout(std::span<const std::byte> bytes,
                                           std::optional<std::uint64_t> body_bytes);

/// A process makes a new nonce for each generation and puts it into its address, so that headers sent to it
/// in an earlier generation are refused.
using receiver_nonce = std::array<std::byte, 32>;

/// A code that only the two ends of a connection can compute, for one generation: it proves knowledge of the
/// secret. Private headers contain it; other headers have a code of their own, keyed by it.
messaging::authentication_code connection_code(const messaging::frame_authenticator& key,
                                               const receiver_nonce& receiver, std::uint64_t generation,
                                               std::uint32_t from_rank, std::uint32_t to_rank);

}  // namespace troupe::transport
