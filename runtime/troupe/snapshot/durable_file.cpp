#include "troupe/snapshot/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "troupe/snapshot/snapshot_error.hpp"
#include "troupe/snapshot/temporary_name.hpp"

namespace troupe {
namespace {

std::string advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "Free space on that file system or choose another snapshot folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "Choose a snapshot folder that this user may read and write";
    case ENOTDIR:
    case EEXIST:
      return "A file stands where a folder is needed: choose another snapshot folder";
    default:
      return "Check the disk, or choose another snapshot folder";
  }
}

[[noreturn]] void fail(const std::string& action, const std::filesystem::path& object, int error_number) {
  throw snapshot_error("cannot " + action + " " + object.string() + ": " + std::strerror(error_number) +
                       ". " + advice(error_number));
}

/// An open file, closed at the end of the scope. `path` is what errors name.
class descriptor {
 public:
  descriptor(const std::filesystem::path& opened, int flags, const std::string& action)
      : number_(::open(opened.c_str(), flags | O_CLOEXEC, 0666)), action_(action), path_(opened) {
    if (number_ < 0) fail(action_, path_, errno);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { ::close(number_); }

  void write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      auto written = ::write(number_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(action_, path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  void read_all(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      auto got = ::read(number_, bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(action_, path_, errno);
      if (got == 0) throw snapshot_error("cannot read " + path_.string() + ": it became shorter meanwhile");
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
  }
  void sync() {
    if (::fsync(number_) != 0) fail(action_, path_, errno);
  }
  /// Some file systems cannot sync a folder and say EINVAL; they have nothing to sync then.
  void sync_folder() {
    if (::fsync(number_) != 0 && errno != EINVAL) fail(action_, path_, errno);
  }
  struct stat status() const {
    struct stat result;
    if (::fstat(number_, &result) != 0) fail(action_, path_, errno);
    return result;
  }

 private:
  int number_;
  std::string action_;
  std::filesystem::path path_;
};

void sync_folder(const std::filesystem::path& folder) {
  descriptor(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, "sync the folder").sync_folder();
}

void write_and_sync(const std::filesystem::path& file, std::span<const std::byte> bytes,
                    const std::function<void()>& half_written) {
  descriptor out(file, O_WRONLY | O_CREAT | O_TRUNC, "write");
  out.write_all(bytes.first(bytes.size() / 2));
  half_written();
  out.write_all(bytes.subspan(bytes.size() / 2));
  out.sync();
}

}  // namespace

void write_durably(const std::filesystem::path& file, std::span<const std::byte> bytes,
                   const std::function<void()>& half_written) {
  auto temporary = file.parent_path() / temporary_name(file.filename().string());
  try {
    write_and_sync(temporary, bytes, half_written);
    if (::rename(temporary.c_str(), file.c_str()) != 0) fail("write", file, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(file.parent_path());
}

void create_durably(const std::filesystem::path& folder) {
  std::error_code problem;
  if (std::filesystem::is_directory(folder, problem)) return;
  auto parent = std::filesystem::absolute(folder).parent_path();
  if (!std::filesystem::is_directory(parent, problem)) create_durably(parent);
  if (::mkdir(folder.c_str(), 0777) != 0 &&
      (errno != EEXIST || !std::filesystem::is_directory(folder, problem)))
    fail("create the folder", folder, errno);
  sync_folder(parent);
}

void remove_durably(const std::filesystem::path& file) {
  if (::unlink(file.c_str()) != 0) {
    if (errno == ENOENT) return;
    fail("remove", file, errno);
  }
  sync_folder(file.parent_path());
}

tensor read_whole(const std::filesystem::path& file, std::uint64_t size_bytes) {
  // Not blocking: the name could be a pipe's.
  descriptor in(file, O_RDONLY | O_NONBLOCK, "read");
  auto status = in.status();
  if (!S_ISREG(status.st_mode))
    throw snapshot_error("cannot read " + file.string() + ": it is no regular file");
  if (auto found = static_cast<std::uint64_t>(status.st_size); found != size_bytes)
    throw snapshot_error(file.string() + " has " + std::to_string(found) + " bytes instead of " +
                         std::to_string(size_bytes));
  auto content = tensor::empty({static_cast<std::int64_t>(size_bytes)}, dtype::u8);
  in.read_all(content.bytes());
  return content;
}

}  // namespace troupe
