#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "troupe/snapshot/part.hpp"

namespace troupe {

/// A snapshot that cannot be written or read; names file, reason and what to do.
class snapshot_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One part as the manifest lists it.
struct manifest_part {
  std::uint32_t stage = 0;
  std::string file;               ///< relative to the snapshot's folder
  std::uint64_t size_bytes = 0;
  std::string checksum;           ///< hex, of the whole file
  std::string host;               ///< whose file system holds it
  bool operator==(const manifest_part&) const = default;
};

/// Written last, and what makes a snapshot exist.
struct snapshot_manifest {
  std::string job_id;
  std::uint64_t step = 0;
  std::uint64_t generation = 0;
  std::uint32_t num_stages = 1;
  std::string numeric_class;
  std::string created;  ///< UTC, ISO 8601
  /// Options the bits depend on (seed, batch, microbatches, model fingerprint, ...), by name. A job that resumes compares.
  std::vector<std::pair<std::string, std::string>> identity;
  std::vector<manifest_part> parts;  ///< [num_stages], by stage
  bool operator==(const snapshot_manifest&) const = default;
};

/// What stands in a snapshot folder, good or not.
struct snapshot_info {
  std::uint64_t step = 0;
  std::filesystem::path folder;
  std::optional<snapshot_manifest> manifest;  ///< none: incomplete or unreadable
  std::string problem;                        ///< empty when the manifest is readable and every file has its size
};

struct snapshot_store_options {
  std::filesystem::path folder;
  int keep = 2;  ///< committed snapshots kept on disk; older ones are deleted after a commit. At least 1.
  /// Called at named points of a write ("part_half_written", "part_written", "before_manifest"); for fault drills.
  std::function<void(std::string_view point)> at_point = [](std::string_view) {};
};

/// Snapshots in a folder: <folder>/step-000000000120/{stage-0002.part, manifest.json}. Files are written beside their
/// final name, synced, renamed, and the folder synced. Not thread-safe; any number of processes may
/// write different parts of one snapshot.
class snapshot_store {
 public:
  explicit snapshot_store(snapshot_store_options options);

  /// Creates the folder and proves that it can be written. Throws snapshot_error saying why not.
  void prepare();
  /// Writes one encoded part (encode_part's bytes) and returns its manifest entry. Throws snapshot_error (disk full, ...),
  /// leaving no partial file behind.
  manifest_part write_part(std::uint64_t step, std::uint32_t stage, std::span<const std::byte> encoded);
  /// Writes the manifest, then deletes snapshots older than the newest `keep` committed ones and steps newer than
  /// this one (they belong to a future that was rolled back).
  void commit(const snapshot_manifest& manifest);

  /// Newest first. Never throws for bad content; that is what `problem` is for.
  std::vector<snapshot_info> list() const;
  /// Reads and checks every part of a snapshot: the problems found, empty if none.
  std::vector<std::string> verify(const snapshot_info& which) const;
  /// Throws snapshot_error naming the file and what is wrong with it.
  snapshot_part read_part(const snapshot_manifest& manifest, std::uint32_t stage) const;
  /// The newest snapshot of which every part passes its checks. `warn` hears of each damaged newer one, named.
  std::optional<snapshot_manifest> newest_valid(const std::function<void(const std::string&)>& warn) const;

 private:
  snapshot_store_options options_;
};

}  // namespace troupe
