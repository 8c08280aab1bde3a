#include "troupe/files/folder_marker.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/open_file.hpp"
#include "troupe/files/temporary_name.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::files {
namespace {

/// Hosts may have the same name, and their processes the same ids.
std::string random_text() {
  std::uint64_t bits = 0;
  check_posix(::getrandom(&bits, sizeof bits, 0), "get random bytes");
  return std::to_string(bits);
}

/// A folder that is opened anew is asked for at its server, other than one whose content is known.
bool is_there(const std::filesystem::path& folder, const std::string& name) {
  posix::unique_fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat found {};
  return opened && ::fstatat(opened.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

folder_marker::folder_marker(const std::filesystem::path& folder)
    : file_(folder / temporary_name("marker-" + random_text())) {
  open_file(new_file{.path = file_, .named = file_}, "write").sync();
  sync_folder(folder);
}

folder_marker::~folder_marker() { ::unlink(file_.c_str()); }

bool sees_marker(const std::filesystem::path& folder, std::string name,
                 const std::function<std::optional<std::string>()>& wait_for_next,
                 std::chrono::milliseconds patience) {
  auto until = std::chrono::steady_clock::now() + patience;
  while (!is_there(folder, name)) {
    if (std::chrono::steady_clock::now() >= until) return false;
    auto next = wait_for_next();
    if (!next) return true;
    name = std::move(*next);
  }
  return true;
}

}  // namespace troupe::files
