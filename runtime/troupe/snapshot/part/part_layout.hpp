#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "troupe/files/checksum.hpp"

namespace troupe::snapshot {

/// Elements of a part have a checksum for each so many bytes.
constexpr std::uint64_t part_block_bytes = std::uint64_t{64} << 20;
/// The oldest version with one for each block; those before have one for the whole part.
constexpr std::uint32_t first_version_with_blocks = 3;
constexpr std::uint32_t newest_part_version = 3;

/// Where the pieces of an encoded part lie (encode_part).
struct part_layout {
  std::uint32_t version = newest_part_version;
  std::uint64_t header_bytes = 0;
  std::uint64_t elements_bytes = 0;

  std::uint64_t elements_begin() const;
  std::uint64_t table_begin() const { return elements_begin() + elements_bytes; }
  std::uint64_t num_blocks() const;
  std::uint64_t checksum_begin() const { return table_begin() + num_blocks() * files::checksum_bytes; }
  std::uint64_t total_bytes() const { return checksum_begin() + files::checksum_bytes; }
};

constexpr std::size_t part_prefix_bytes = 32;
constexpr std::size_t part_alignment_bytes = 64;

/// The next multiple of the alignment.
constexpr std::uint64_t padded_in_part(std::uint64_t size_bytes) {
  return (size_bytes + part_alignment_bytes - 1) / part_alignment_bytes * part_alignment_bytes;
}

/// Writes the first part_prefix_bytes.
void write_prefix(std::span<std::byte> part, const part_layout& layout);
/// Reads them from the first bytes of a part of `size_bytes`, and checks its lengths against that. Throws
/// snapshot_error.
part_layout read_prefix(std::span<const std::byte> first, std::uint64_t size_bytes);

/// Writes the checksums of a part that has everything else.
void write_checksums(std::span<std::byte> part, const part_layout& layout);

}  // namespace troupe::snapshot
