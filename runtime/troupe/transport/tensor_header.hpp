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

/// How to make room for a tensor.
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

/// The reverse, for any bytes. Returns the part for decode_layout, of no bytes if it is no such header.
std::span<const std::byte> read_tensor_header(std::span<const std::byte> bytes, tensor_tag& tag,
                                              std::optional<authentication_code>& body_code);
/// Nothing if there is no such layout, or not of a tensor of `body_bytes` bytes.
std::optional<tensor_layout> decode_layout(std::span<const std::byte> bytes, std::uint64_t body_bytes);

/// What a node makes for each generation and puts into its address: what was sent to it before is of no use
/// in that generation.
using receiver_nonce = std::array<std::byte, 32>;

/// What is known to the two ends of a connection in one generation alone: who knows it knows the secret.
/// Heads that need no code of their own show it; others have a code with it as the key.
authentication_code connection_code(const frame_authenticator& key, const receiver_nonce& receiver,
                                    std::uint64_t generation, std::uint32_t from_rank, std::uint32_t to_rank);

}  // namespace troupe
