#pragma once
#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

#include "troupe/tensor/tensor.hpp"

namespace troupe::files {

class open_file;

/// How a file is written.
struct write_hooks {
  std::function<void()> half_written = [] {};  ///< called after the first half; for fault injection
  std::function<void()> on_progress = [] {};   ///< called about every 64 MiB that the disk has taken
  mode_t mode = 0666;                          ///< of the file; the umask applies only to 0666
};

/// Replaces the content of `file` by `bytes`, or leaves the file unchanged: writes a temporary file beside
/// it, syncs, renames, and syncs the folder. Overwrites only a regular file, see require_replaceable. Throws
/// snapshot_error with file, reason and what to do, and removes the temporary file then.
void write_durably(const std::filesystem::path& file, std::span<const std::byte> bytes,
                   const write_hooks& hooks = {});

/// The same; `write` writes the content into the file that it is given.
void write_durably(const std::filesystem::path& file, const std::function<void(open_file&)>& write,
                   const write_hooks& hooks = {});

/// The same; the content is the concatenation of `pieces`.
void write_durably(const std::filesystem::path& file, std::span<const std::span<const std::byte>> pieces);

/// Throws snapshot_error if `file` exists and is no regular file: a folder, a symbolic link, a pipe, a
/// device.
void require_replaceable(const std::filesystem::path& file);

/// Creates `folder` with these permissions (the umask applies only to 0777), and missing parents with 0777
/// less the umask. Throws snapshot_error.
void create_durably(const std::filesystem::path& folder, mode_t mode = 0777);

/// Makes earlier renames and removals in `folder` durable. Throws snapshot_error.
void sync_folder(const std::filesystem::path& folder);

/// Removes a file and syncs its folder; it need not exist. Throws snapshot_error.
void remove_durably(const std::filesystem::path& file);

/// The bytes of a small file as a u8 tensor [size_bytes]. Throws snapshot_error if the file cannot be read,
/// is no regular file or has another size.
tensor read_whole(const std::filesystem::path& file, std::uint64_t size_bytes);

}  // namespace troupe::files
