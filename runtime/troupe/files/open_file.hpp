#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "troupe/posix/unique_fd.hpp"

namespace troupe::files {

/// Throws snapshot_error "cannot <action> <object>: <reason>. <what to do>", or disk_full if the disk is
/// full.
[[noreturn]] void fail_on_file(const std::string& action, const std::filesystem::path& object,
                               int error_number);

/// A file that is written under a name of its own before it is renamed.
struct new_file {
  std::filesystem::path path;
  std::filesystem::path named;  ///< in errors: what it will be
  mode_t mode = 0666;           ///< the umask applies only to 0666
};

/// An open file, closed at the end of the scope. Each function throws snapshot_error, naming action and path.
class open_file {
 public:
  /// A file that is there. `flags` are those of open(2), without O_CREAT; `action` is the verb in errors, for
  /// example "read". `named`: the path in errors instead of `opened`, unless it is empty.
  open_file(const std::filesystem::path& opened, int flags, const std::string& action,
            const std::filesystem::path& named = {});
  /// Makes a file for writing, by create_anew().
  open_file(const new_file& made, const std::string& action);
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  /// Syncs large contents in pieces of about 64 MiB and calls `on_progress` after each, so that it reports
  /// the progress of the disk, and the last sync is short.
  void write_all(
      std::span<const std::byte> bytes, const std::function<void()>& on_progress = [] {});
  /// Reads the next bytes of the file. Throws if the file ends before.
  void read_all(std::span<std::byte> bytes);
  /// Reads the bytes at `offset`, from any thread. Throws if the file ends before.
  void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// posix_fadvise(2), whose failure changes no result.
  void advise(std::uint64_t offset, std::uint64_t size_bytes, int advice) const;
  void sync();
  /// EINVAL is no error: file systems that cannot sync a folder have nothing to sync.
  void sync_folder();
  struct stat status() const;

 private:
  posix::unique_fd number_;
  std::string action_;
  std::filesystem::path path_;
};

/// A regular file open for reading. Anything else with this name (a pipe, a folder) is refused.
class regular_file : public open_file {
 public:
  explicit regular_file(const std::filesystem::path& file);
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::uint64_t size_bytes_;
};

}  // namespace troupe::files
