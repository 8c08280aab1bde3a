#include "troupe/snapshot/open_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "troupe/snapshot/snapshot_error.hpp"

namespace troupe {
namespace {

std::string advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "Free space on that file system or choose another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "Choose a folder that this user may read and write";
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
  throw snapshot_error("cannot " + action + " " + object.string() + ": " + std::strerror(error_number) +
                       ". " + advice(error_number));
}

open_file::open_file(const std::filesystem::path& opened, int flags, const std::string& action)
    : number_(::open(opened.c_str(), flags | O_CLOEXEC, 0666)), action_(action), path_(opened) {
  if (number_ < 0) fail_on_file(action_, path_, errno);
}

open_file::~open_file() { ::close(number_); }

void open_file::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto written = ::write(number_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_on_file(action_, path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void open_file::read_all(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    auto got = ::read(number_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_on_file(action_, path_, errno);
    if (got == 0) throw snapshot_error("cannot read " + path_.string() + ": it became shorter meanwhile");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void open_file::sync() {
  if (::fsync(number_) != 0) fail_on_file(action_, path_, errno);
}

void open_file::sync_folder() {
  if (::fsync(number_) != 0 && errno != EINVAL) fail_on_file(action_, path_, errno);
}

struct stat open_file::status() const {
  struct stat result;
  if (::fstat(number_, &result) != 0) fail_on_file(action_, path_, errno);
  return result;
}

// Not blocking: the name could be a pipe's.
regular_file::regular_file(const std::filesystem::path& file)
    : open_file(file, O_RDONLY | O_NONBLOCK, "read") {
  auto found = status();
  if (!S_ISREG(found.st_mode))
    throw snapshot_error("cannot read " + file.string() + ": it is no regular file");
  size_bytes_ = static_cast<std::uint64_t>(found.st_size);
}

}  // namespace troupe
