#pragma once
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

/// The code that heads of tensors show which need none of their own: who knows it knows the secret.
authentication_code connection_code(const frame_authenticator& key, std::uint64_t generation,
                                    std::uint32_t from_rank, std::uint32_t to_rank);

}  // namespace troupe
