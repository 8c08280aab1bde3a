#pragma once
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troupe/files/checksum.hpp"
#include "troupe/files/snapshot_error.hpp"

namespace troupe::files {

class open_file;

/// A file of blocks to which blocks are only appended, written and read one block at a time, for data that
/// must not be in memory as a whole.
///
/// All numbers are little-endian:
///
///     offset  bytes  what
///          0      8  "TROUPEBL"
///          8      4  format version, 2
///         12      4  zero
///         16         each block: its size in bytes (4, not 0), then these bytes
///
/// The file has no end mark: written_blocks says how much of it is meant. Whatever comes after that was
/// appended later, possibly by a writer that was killed, and is not read.
struct written_blocks {
  std::uint64_t size_bytes = 0;  ///< from the beginning of the file
  checksum sum{};                ///< BLAKE2b-256 of these bytes
};

/// Returns the block with this number, from 0 on; the same bytes whenever it is asked.
using block_source = std::function<std::vector<std::byte>(std::size_t number)>;
using block_sink = std::function<void(std::span<const std::byte> block)>;

constexpr std::size_t max_block_bytes = std::size_t{64} << 20;

/// Writes files of a growing number of blocks. Each file is the previous one under another name (a hard link)
/// with the new blocks appended, so that writing costs as much as the new blocks. What was written of the
/// previous file stays as it is.
///
/// The writer begins a new file with all blocks instead:
/// - at first, and after an error
/// - if the previous file is gone or is not as the writer left it
/// - on file systems without hard links
class block_file_writer {
 public:
  /// Writes the first `num_blocks` blocks and makes them durable. `file` is replaced at once or, if this
  /// throws, not at all. `mode`: permissions of a new file; the umask applies only to 0666. Throws
  /// snapshot_error, and std::invalid_argument for an empty block or one above max_block_bytes.
  written_blocks write(const std::filesystem::path& file, std::size_t num_blocks, const block_source& block,
                       mode_t mode = 0666);
  /// Why the previous file could not get another name although it is there; empty if it could.
  const std::string& link_problem() const { return link_problem_; }

 private:
  bool links_previous(const std::filesystem::path& to);
  bool is_as_left(const struct stat& found) const;
  void begin();
  void append(open_file& out, std::size_t num_blocks, const block_source& block);

  /// What was written last; an empty path: nothing that can be continued.
  std::filesystem::path previous_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::size_t num_blocks_ = 0;
  std::uint64_t size_bytes_ = 0;
  std::unique_ptr<running_checksum> sum_;
  std::string link_problem_;
};

/// Throws snapshot_error naming what is wrong (no such file, other version, truncated, checksum).
void check_blocks(const std::filesystem::path& file, const written_blocks& expected);

/// Checks the file as check_blocks does, then passes every block to `take`, in order.
void read_blocks(const std::filesystem::path& file, const written_blocks& expected, const block_sink& take);

}  // namespace troupe::files
