#include "troupe/files/open_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "troupe/files/snapshot_error.hpp"
#include "troupe/posix/files/safe_file.hpp"

namespace troupe::files {
namespace {

/// The number of bytes read or written between two calls of a progress hook.
constexpr std::size_t unsynced_bytes = std::size_t{64} << 20;
constexpr mode_t default_mode = 0666;

std::string advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "Free space on that file system or choose another folder";
    case EFBIG:
      return "Raise the limit on file sizes (ulimit -f), or choose another file system";
    case EACCES:
    case EPERM:
    case EROFS:
      return "Choose a file or folder that this user may read and write";
    case EMFILE:
    case ENFILE:
      return "Raise the limit on open files (ulimit -n), or have fewer open at a time (max_open_shards of a "
             "stream_dataset)";
    case ENOTDIR:
    case EEXIST:
      return "A file stands where a folder is needed: choose another folder";
    case ENOENT:
      return "Check the name";
    default:
      return "Check the disk, or choose another folder";
  }
}

}  // namespace

void fail_on_file(const std::string& action, const std::filesystem::path& object, int error_number) {
  auto what = "cannot " + action + " " + object.string() + ": " + std::strerror(error_number) + ". " +
              advice(error_number);
  if (error_number == ENOSPC || error_number == EDQUOT) throw disk_full(what);
  throw snapshot_error(what);
}

open_file::open_file(const std::filesystem::path& opened, int flags, const std::string& action,
                     const std::filesystem::path& named)
    : number_(::open(opened.c_str(), flags | O_CLOEXEC)),
      action_(action),
      path_(named.empty() ? opened : named) {
  if (!number_) fail_on_file(action_, path_, errno);
}

open_file::open_file(const new_file& made, const std::string& action) : action_(action), path_(made.named) {
  auto created = posix::create_anew(made.path, made.mode);
  if (!created.fd) fail_on_file(action_, path_, created.error_number);
  number_ = std::move(created.fd);
  if (made.mode != default_mode && ::fchmod(number_.get(), made.mode) != 0)
    fail_on_file("set the permissions of", path_, errno);
}

void open_file::write_all(std::span<const std::byte> bytes, const std::function<void()>& on_progress) {
  for (std::size_t unsynced = 0; !bytes.empty();) {
    auto written = ::write(number_.get(), bytes.data(), std::min(bytes.size(), unsynced_bytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_on_file(action_, path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    unsynced += static_cast<std::size_t>(written);
    if (unsynced < unsynced_bytes) continue;
    if (::fdatasync(number_.get()) != 0) fail_on_file(action_, path_, errno);
    unsynced = 0;
    on_progress();
  }
}

void open_file::read_all(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    auto got = ::read(number_.get(), bytes.data(), std::min(bytes.size(), unsynced_bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_on_file(action_, path_, errno);
    if (got == 0)
      throw snapshot_error("cannot read " + path_.string() + ": it was truncated during the read");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void open_file::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    auto got = ::pread(number_.get(), bytes.data(), std::min(bytes.size(), unsynced_bytes),
                       static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_on_file(action_, path_, errno);
    if (got == 0)
      throw snapshot_error("cannot read " + path_.string() + ": it ends at " + std::to_string(offset) +
                           " bytes, " + std::to_string(bytes.size()) +
                           " too early. It was truncated: write or copy it again");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void open_file::advise(std::uint64_t offset, std::uint64_t size_bytes, int advice) const {
  ::posix_fadvise(number_.get(), static_cast<off_t>(offset), static_cast<off_t>(size_bytes), advice);
}

void open_file::sync() {
  if (::fsync(number_.get()) != 0) fail_on_file(action_, path_, errno);
}

void open_file::sync_folder() {
  if (::fsync(number_.get()) != 0 && errno != EINVAL) fail_on_file(action_, path_, errno);
}

struct stat open_file::status() const {
  struct stat result;
  if (::fstat(number_.get(), &result) != 0) fail_on_file(action_, path_, errno);
  return result;
}

// Opened with O_NONBLOCK, since the name could be that of a pipe.
regular_file::regular_file(const std::filesystem::path& file)
    : open_file(file, O_RDONLY | O_NONBLOCK, "read") {
  auto found = status();
  if (!S_ISREG(found.st_mode))
    throw snapshot_error("cannot read " + file.string() + ": it is no regular file");
  size_bytes_ = static_cast<std::uint64_t>(found.st_size);
}

}  // namespace troupe::files
