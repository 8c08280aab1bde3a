#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "troupe/wire/authenticator.hpp"

namespace troupe {

/// The head of a small tensor that is like an earlier one from the same sender but for its step and
/// microbatch. Together with eight bytes of elements it fills the one cache line in which UCX announces a
/// message in shared memory (an element of its queue begins with 28 bytes, and 8 more of ours): each further
/// line is another trip between two cores. Only where heads are private.
struct repeated_head {
  std::uint8_t pattern = 0;     ///< the lowest bits of the earlier one's sequence number
  std::uint16_t from_rank = 0;  ///< little-endian on the wire, as all
  std::uint64_t code = 0;       ///< the first half of the connection's
  std::uint32_t step = 0;       ///< the lower half
  std::uint32_t microbatch = 0;
  bool operator==(const repeated_head&) const = default;
};

/// No other head is so short.
constexpr std::size_t repeated_head_bytes = 20;
/// Tensors up to here are repeated.
constexpr std::size_t largest_repeated_bytes = 1024;

void write_repeated_head(const repeated_head& repeated, std::vector<std::byte>& head);
/// Nothing for other bytes.
std::optional<repeated_head> read_repeated_head(std::span<const std::byte> head);

/// The first half, as a number.
std::uint64_t half_of(const authentication_code& code);

}  // namespace troupe
