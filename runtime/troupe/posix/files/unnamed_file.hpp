#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "troupe/posix/unique_fd.hpp"

namespace troupe::posix {

/// A temporary file without a name (O_TMPFILE or unlinked) that vanishes when it is closed: for data that
/// grows and is seldom read. On a tmpfs it still takes memory, outside of this process.
class unnamed_file {
 public:
  /// `folder` empty: the one for temporary files.
  explicit unnamed_file(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

  /// Made at the first append. Throws system_failure (no such folder, disk full, ...), and holds what it held
  /// before.
  void append(std::span<const std::byte> bytes);
  /// Throws system_failure.
  std::vector<std::byte> read(std::uint64_t offset, std::size_t size_bytes) const;
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::filesystem::path folder_;
  unique_fd fd_;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace troupe::posix
