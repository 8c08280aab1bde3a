#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace troupe {

/// Throws snapshot_error "cannot <action> <object>: <reason>. <what to do>".
[[noreturn]] void fail_on_file(const std::string& action, const std::filesystem::path& object,
                               int error_number);

/// An open file, closed at the end of the scope. Each function throws snapshot_error, naming action and path.
class open_file {
 public:
  /// `flags` are those of open(2); `action` is what errors say was tried, for example "read".
  open_file(const std::filesystem::path& opened, int flags, const std::string& action);
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file();

  void write_all(std::span<const std::byte> bytes);
  /// The next bytes of the file; a file that ends before is refused.
  void read_all(std::span<std::byte> bytes);
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
