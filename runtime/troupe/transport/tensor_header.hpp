#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "troupe/transport/transport.hpp"
#include "troupe/wire/authenticator.hpp"

namespace troupe {

/// The header extension of a tensor frame: what the tensor is, and how to make room for it.
struct tensor_header {
  tensor_tag tag;
  dtype type = dtype::f32;
  shape extents;
  /// The code of the elements, if frames are verified.
  std::optional<authentication_code> body_code;
  bool operator==(const tensor_header&) const = default;
};

/// Throws std::invalid_argument for more than 255 extents.
std::vector<std::byte> encode_tensor_header(const tensor_header& header);
/// The same of parts, into a vector that may have room already.
void encode_tensor_header(const tensor_tag& tag, dtype type, const shape& extents,
                          const std::optional<authentication_code>& body_code, std::vector<std::byte>& bytes);

/// The reverse, for any bytes: nothing if they are no such header, or describe a tensor that does not have
/// `body_bytes` bytes.
std::optional<tensor_header> decode_tensor_header(std::span<const std::byte> bytes, std::uint64_t body_bytes);

/// The code that heads of tensors show which need none of their own: who knows it knows the secret.
authentication_code connection_code(const frame_authenticator& key, std::uint64_t generation,
                                    std::uint32_t from_rank, std::uint32_t to_rank);

}  // namespace troupe
