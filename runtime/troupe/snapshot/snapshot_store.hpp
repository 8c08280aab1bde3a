#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/files/block_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/snapshot/manifest.hpp"
#include "troupe/snapshot/part/part_reader.hpp"
#include "troupe/snapshot/snapshot_access.hpp"

namespace troupe::snapshot {

/// The state of a snapshot:
/// - incomplete: without a manifest, so being written or abandoned
/// - damaged: its manifest or one of its parts is damaged
/// - set_aside: damaged, or moved away by a fresh start; it is kept under another name and not counted
enum class snapshot_state : std::uint8_t { ok, incomplete, damaged, set_aside };
std::string_view to_string(snapshot_state state);

/// One snapshot in the folder, valid or not.
struct snapshot_info {
  std::uint64_t step = 0;
  std::filesystem::path folder;
  snapshot_state state = snapshot_state::incomplete;
  std::optional<snapshot_manifest> manifest;  ///< none: incomplete or unreadable
  /// Empty if the manifest is readable and every file has its size. Files that another host wrote are not
  /// required. Without control characters.
  std::string problem;
};

/// A snapshot that cannot be used, and why.
struct unusable_snapshot {
  snapshot_info info;
  std::string reason;
};

/// A part's file, open for reading; see part_reader. Errors name the file.
class stored_part {
 public:
  stored_part(std::filesystem::path file, part_reader reader)
      : file_(std::move(file)), reader_(std::move(reader)) {}

  const snapshot_part& header() const { return reader_.header(); }
  const std::vector<tensor_contents>& contents() const { return header().contents; }
  void read(std::size_t tensor, std::int64_t first, std::span<std::byte> to);
  named_tensor read(std::size_t tensor);
  void check();

 private:
  std::filesystem::path file_;
  part_reader reader_;
};

/// The newest snapshot whose parts all pass their checks, and the newer ones that do not (all if none
/// passes).
struct snapshot_search {
  std::optional<snapshot_manifest> found;
  std::vector<unusable_snapshot> unusable;  ///< newest first
};

struct snapshot_store_options {
  std::filesystem::path folder;
  int keep = 2;  ///< committed snapshots kept on disk; older ones are deleted after a commit. At least 1.
  /// Called at named points of a write ("part_half_written", "part_written", "before_manifest",
  /// "manifest_written", "manifest_removed"); for fault injection.
  std::function<void(std::string_view point)> at_point = [](std::string_view) {};
  /// Called about every 64 MiB that were read, written or checked.
  std::function<void()> on_progress = [] {};
  snapshot_access access = snapshot_access::owner;  ///< who else may read what is written
  /// Called once if the results of calls are written as a whole for each snapshot, and why.
  std::function<void(const std::string& problem)> warn = [](const std::string&) {};
};

/// Snapshots in a folder: FOLDER/step-000000000120/{stage-0002.part, calls.part, manifest.json}. Files are
/// written beside their final name, synced, renamed, and the folder synced. Not thread-safe; any number of
/// processes may write different parts of one snapshot. A damaged snapshot is never deleted.
class snapshot_store {
 public:
  /// Throws std::invalid_argument for an empty folder name or `keep` below 1. Touches no file.
  explicit snapshot_store(snapshot_store_options options);

  /// Creates the folder and checks that it is writable. Throws snapshot_error with the reason if it is not.
  void prepare();
  /// Writes one encoded part (encode_part's bytes) and returns its manifest entry. If the disk is full, it
  /// deletes snapshots older than the newest valid one and files of failed writers, and tries again.
  /// Throws snapshot_error (disk full, ...), leaving no file of this part behind.
  manifest_part write_part(std::uint64_t step, const layout::part_id& part,
                           std::span<const std::byte> encoded);
  /// Writes the results of the job's first `num_results` calls, a block each: appends those that are new to
  /// the file of an earlier snapshot, under a second name, see block_file_writer. If `keep` is above 1, two
  /// files take turns, so that a damaged one costs one snapshot and not the one before. Throws
  /// snapshot_error, leaving no such file of this step behind.
  manifest_file write_calls(std::uint64_t step, std::size_t num_results, const files::block_source& result);
  /// Writes the manifest, then deletes snapshots older than the newest `keep` valid ones, incomplete older
  /// ones, and files that killed writers left. Snapshots newer than this one were rolled back and are deleted
  /// first; newer parts without a manifest may be being written and are kept until a later commit. Damaged
  /// snapshots are set aside instead of deleted. If the process is killed at any moment, the folder holds
  /// this snapshot or the previous one. Throws snapshot_error; if a deletion failed, the snapshot exists
  /// already.
  void commit(const snapshot_manifest& manifest);
  /// Deletes the parts of a step that will get no manifest. Does nothing if it has one.
  void discard(std::uint64_t step);
  /// Gives the snapshot another name, under which it neither counts nor is ever deleted. Throws
  /// snapshot_error.
  void set_aside(const snapshot_info& which);

  /// Newest first, without those that were set aside. Reports bad content in `problem`, not by an exception.
  /// Throws snapshot_error if the folder exists and cannot be read; a missing folder has no snapshots.
  std::vector<snapshot_info> list() const;
  /// The snapshots that were set aside, newest first.
  std::vector<snapshot_info> list_set_aside() const;
  /// Reads and checks every part of a snapshot: the problems found, empty if none.
  std::vector<std::string> verify(const snapshot_info& which) const;
  /// Checks that it is what the manifest lists; its elements are checked as they are read. Throws
  /// snapshot_error naming the file and what is wrong with it, and std::invalid_argument if the manifest does
  /// not list the part.
  stored_part open_part(const snapshot_manifest& manifest, const layout::part_id& wanted) const;
  /// Checks the file of write_calls, then passes its blocks to `take`. Throws snapshot_error naming the file
  /// and what is wrong with it, and std::invalid_argument if the manifest lists none.
  void read_calls(const snapshot_manifest& manifest, const files::block_sink& take) const;
  /// Reads snapshots, newest first, up to the first valid one.
  snapshot_search find() const;
  /// The newest valid snapshot. Calls `warn` with the name and problem of each damaged newer one.
  std::optional<snapshot_manifest> newest_valid(const std::function<void(const std::string&)>& warn) const;

 private:
  std::filesystem::path folder_of(std::uint64_t step) const;
  template <class Write>
  auto write_freeing_space(std::uint64_t step, const Write& write);
  void create_folders(std::uint64_t step);
  manifest_part write_once(const manifest_part& entry, const std::filesystem::path& folder,
                           std::span<const std::byte> encoded);
  // find_snapshots.cpp
  snapshot_info look_at(std::uint64_t step, const std::filesystem::path& folder) const;
  stored_part open_entry(const std::filesystem::path& folder, const snapshot_manifest& manifest,
                         const manifest_part& entry) const;
  void read_calls(const std::filesystem::path& folder, const manifest_file& entry,
                  const files::block_sink* take) const;
  // prune_snapshots.cpp
  void undo_newer_than(std::uint64_t step);
  void prune(std::uint64_t newest);
  void free_space(std::uint64_t for_step);
  void remove(const std::filesystem::path& snapshot_folder);

  snapshot_store_options options_;
  std::array<files::block_file_writer, 2> calls_;  ///< the one to be used next first
  bool has_warned_ = false;                        ///< of file systems without hard links
};

/// Compares the files' sizes with the manifest: the first problem, or empty.
std::string problem_of_files(const snapshot_manifest& manifest, const std::filesystem::path& folder);

}  // namespace troupe::snapshot
