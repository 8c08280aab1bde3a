#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "troupe/transport/transport.hpp"
#include "troupe/wire/authenticator.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe {

/// What is needed to allocate a tensor.
struct tensor_layout {
  dtype type = dtype::f32;
  shape extents;
  bool operator==(const tensor_layout&) const = default;
};

/// The header extension of a tensor frame is the tensor's tag, its layout and, if frames are verified, the
/// code of its elements. Throws std::invalid_argument for more than 255 extents.
std::size_t tensor_header_bytes(const shape& extents, const std::optional<authentication_code>& body_code);
void write_tensor_header(const tensor_tag& tag, dtype type, const shape& extents,
                         const std::optional<authentication_code>& body_code, byte_writer& writer);

/// Decodes a header from any bytes. Returns the part for decode_layout, or no bytes if the header is invalid.
std::span<const std::byte> read_tensor_header(std::span<const std::byte> bytes, tensor_tag& tag,
                                              std::optional<authentication_code>& body_code);
/// Empty if the layout is invalid or its tensor has not `body_bytes` bytes.
std::optional<tensor_layout> decode_layout(std::span<const std::byte> bytes, std::uint64_t body_bytes);

/// A node makes a new nonce for each generation and puts it into its address, so that headers sent to it in
/// an earlier generation are refused.
using receiver_nonce = std::array<std::byte, 32>;

/// A code that only the two ends of a connection can compute, for one generation: it proves knowledge of the
/// secret. Private headers contain it; other headers have a code of their own, keyed by it.
authentication_code connection_code(const frame_authenticator& key, const receiver_nonce& receiver,
                                    std::uint64_t generation, std::uint32_t from_rank, std::uint32_t to_rank);

}  // namespace troupe
