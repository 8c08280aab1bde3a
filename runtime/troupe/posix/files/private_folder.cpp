#include "troupe/posix/files/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "troupe/posix/files/safe_file.hpp"

namespace troupe::posix {
namespace {

std::string own_name() { return "troupe-" + std::to_string(::geteuid()); }

}  // namespace

std::string problem_of_private(const std::filesystem::path& folder) {
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0) return std::strerror(errno);
  if (!S_ISDIR(found.st_mode)) return "it is no folder";
  if (found.st_uid != ::geteuid()) return "it belongs to another user (" + std::to_string(found.st_uid) + ")";
  return (found.st_mode & 077) == 0 ? "" : "others can enter it";
}

std::vector<std::filesystem::path> private_folders_in(const std::filesystem::path& parent) {
  std::vector<std::filesystem::path> found;
  std::error_code unreadable;
  for (std::filesystem::directory_iterator entry(parent, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    auto name = entry->path().filename().string();
    bool is_named_so = name == own_name() || name.starts_with(own_name() + "-");
    if (is_named_so && problem_of_private(entry->path()).empty()) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

private_folder private_folder_in(const std::filesystem::path& parent) {
  if (auto others = others_who_may_change(parent); !others.empty()) return {{}, others};
  auto name = (parent / own_name()).string();
  // The umask may have taken this user's own permissions.
  if (::mkdir(name.c_str(), 0700) == 0) ::chmod(name.c_str(), 0700);
  if (problem_of_private(name).empty()) return {name, {}};
  if (auto known = private_folders_in(parent); !known.empty()) return {known.front(), {}};
  name += "-XXXXXX";
  if (!::mkdtemp(name.data())) return {{}, std::strerror(errno)};
  ::chmod(name.c_str(), 0700);
  return {name, {}};
}

}  // namespace troupe::posix
