#include "troupe/posix/files/unnamed_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe::posix {
namespace {

[[noreturn]] void fail(const std::string& action, int error_number) {
  throw system_failure(action + " a temporary file (TMPDIR names the folder)", error_number);
}

/// Not every file system can make a file without a name (NFS): there it gets one for a moment.
unique_fd make_file(std::filesystem::path folder) {
  std::error_code problem;
  if (folder.empty()) folder = std::filesystem::temp_directory_path(problem);
  if (problem) fail("make", problem.value());
  unique_fd made(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (made) return made;
  auto name = (folder / "troupe-XXXXXX").string();
  unique_fd named(::mkostemp(name.data(), O_CLOEXEC));
  if (!named) fail("make", errno);
  ::unlink(name.c_str());
  return named;
}

}  // namespace

void unnamed_file::append(std::span<const std::byte> bytes) {
  if (!fd_) fd_ = make_file(folder_);
  for (std::size_t done = 0; done < bytes.size();) {
    auto written =
        ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(size_bytes_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write", written < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(written);
  }
  size_bytes_ += bytes.size();
}

std::vector<std::byte> unnamed_file::read(std::uint64_t offset, std::size_t size_bytes) const {
  std::vector<std::byte> bytes(size_bytes);
  for (std::size_t done = 0; done < size_bytes;) {
    auto got = ::pread(fd_.get(), bytes.data() + done, size_bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("read", got < 0 ? errno : EIO);
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace troupe::posix
