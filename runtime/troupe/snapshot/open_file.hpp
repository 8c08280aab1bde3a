#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace troupe {

/// Throws snapshot_error "cannot <action> <object>: <reason>. <what to do>", a disk_full where that is the
/// reason.
[[noreturn]] void fail_on_file(const std::string& action, const std::filesystem::path& object,
                               int error_number);

/// An open file, closed at the end of the scope. Each function throws snapshot_error, naming action and path.
class open_file {
 public:
  /// `flags` are those of open(2); `action` is what errors say was tried, for example "read". `mode`: of a
  /// file that is created; other permissions than 0666 hold whatever the process's umask is. `named`: what
  /// errors name instead of `opened`, unless it is empty.
  open_file(const std::filesystem::path& opened, int flags, const std::string& action, mode_t mode = 0666,
            const std::filesystem::path& named = {});
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file();

  /// Large contents are synced on the way, so that `on_progress`, which is called about every 64 MiB, tells
  /// what the disk has taken and the last sync has little left to do.
  void write_all(
      std::span<const std::byte> bytes, const std::function<void()>& on_progress = [] {});
  /// The next bytes of the file; a file that ends before is refused.
  void read_all(
      std::span<std::byte> bytes, const std::function<void()>& on_progress = [] {});
  void sync();
  /// Some file systems cannot sync a folder and say EINVAL; they have nothing to sync then.
  void sync_folder();
  struct stat status() const;

 private:
  int number_;
  std::string action_;
  std::filesystem::path path_;
};

/// A regular file open for reading; anything else that may stand under the name (a pipe, a folder) is
/// refused.
class regular_file : public open_file {
 public:
  explicit regular_file(const std::filesystem::path& file);
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::uint64_t size_bytes_;
};

}  // namespace troupe
