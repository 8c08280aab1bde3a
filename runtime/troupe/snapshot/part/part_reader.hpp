#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "troupe/files/snapshot_error.hpp"
#include "troupe/snapshot/part/part.hpp"
#include "troupe/snapshot/part/part_layout.hpp"

namespace troupe::snapshot {

/// The bytes of an encoded part, wherever they are.
class part_source {
 public:
  virtual ~part_source() = default;
  virtual std::uint64_t size_bytes() const = 0;
  /// `size` bytes from `offset` on, which are inside; valid until the next call. Throws snapshot_error.
  virtual std::span<const std::byte> at(std::uint64_t offset, std::uint64_t size) = 0;
};

/// In memory, which outlives it.
std::unique_ptr<part_source> source_in(std::span<const std::byte> encoded);
/// In a file, of which it holds what was read last. Throws snapshot_error if it cannot be read or has another
/// size.
std::unique_ptr<part_source> source_in(const std::filesystem::path& file, std::uint64_t size_bytes);

/// Reads an encoded part piece by piece, and checks what it reads. Of a file it holds the header and a block
/// (part_block_bytes) at most. All functions throw snapshot_error naming what is wrong: not a part, another
/// version, truncated, trailing bytes, a checksum, a name that occurs twice. Each length is checked against
/// the size before it is used. Version 1 is read as the part of its stage with whole tensors.
class part_reader {
 public:
  /// Reads the header and the checksums. Of versions 1 and 2, which have a single one, it reads the whole
  /// part too. `on_progress` is called for each block that is read.
  explicit part_reader(
      std::unique_ptr<part_source> source, std::function<void()> on_progress = [] {});

  /// Without tensors. `contents` is filled in.
  const snapshot_part& header() const { return header_; }
  /// The one at the end, which depends on all bytes.
  const files::checksum& checksum() const { return checksum_; }
  /// Elements of header().contents[tensor], from `first` on among those that are stored.
  void read(std::size_t tensor, std::int64_t first, std::span<std::byte> to);
  /// All of them.
  named_tensor read(std::size_t tensor);
  /// Checks all that was not checked yet.
  void check();

 private:
  void check_whole();
  void check_places();
  std::span<const std::byte> block(std::uint64_t number);

  std::unique_ptr<part_source> source_;
  std::function<void()> on_progress_;
  part_layout layout_;
  files::checksum checksum_{};
  std::vector<std::byte> block_checksums_;
  snapshot_part header_;
  std::vector<std::uint64_t> begins_;  ///< [tensors] of its elements, in bytes from that of the first one
  std::vector<bool> is_checked_;       ///< [blocks]
  std::optional<std::uint64_t> held_;  ///< the block that the source gave last
  std::span<const std::byte> held_bytes_;
};

}  // namespace troupe::snapshot
