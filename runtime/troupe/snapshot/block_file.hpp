#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "troupe/snapshot/checksum.hpp"
#include "troupe/snapshot/durable_file.hpp"
#include "troupe/snapshot/snapshot_error.hpp"

namespace troupe {

/// A file of blocks that is written and read one block at a time, for data that must not be in memory as a
/// whole.
///
/// All numbers are little-endian:
///
///     offset  bytes  what
///          0      8  "TROUPEBL"
///          8      4  format version, 1
///         12      4  zero
///         16         each block: its size in bytes (4), then these bytes
///                    zero (4): the end
///       last     32  BLAKE2b-256 of everything before
struct written_blocks {
  std::uint64_t size_bytes = 0;  ///< of the file
  checksum sum{};                ///< the one at its end
};

/// Returns the block with this number, from 0 on; an empty block ends the file.
using block_source = std::function<std::vector<std::byte>(std::size_t number)>;
using block_sink = std::function<void(std::span<const std::byte> block)>;

constexpr std::size_t max_block_bytes = std::size_t{64} << 20;

/// Throws snapshot_error, as write_durably does, and std::invalid_argument for a block above
/// max_block_bytes.
written_blocks write_blocks(const std::filesystem::path& file, const block_source& next,
                            const write_hooks& hooks = {});

/// Throws snapshot_error naming what is wrong (no such file, other version, truncated, checksum).
void check_blocks(const std::filesystem::path& file, const written_blocks& expected);

/// Checks the file as check_blocks does, then passes every block to `take`, in order.
void read_blocks(const std::filesystem::path& file, const written_blocks& expected, const block_sink& take);

}  // namespace troupe
