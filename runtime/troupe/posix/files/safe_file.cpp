#include "troupe/posix/files/safe_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

namespace troupe::posix {
namespace {

safe_file failed(int error_number) {
  // ELOOP is how open(2) says that O_NOFOLLOW has met a link.
  auto problem = error_number == ELOOP ? "it is a symbolic link" : std::strerror(error_number);
  return {{}, problem, error_number};
}

std::string problem_of(const struct stat& found, file_owner owner) {
  if (S_ISDIR(found.st_mode)) return "it is a folder";
  if (!S_ISREG(found.st_mode)) return "it is no regular file";
  if (owner == file_owner::this_user && found.st_uid != ::geteuid())
    return "it belongs to another user (" + std::to_string(found.st_uid) + ")";
  if (found.st_nlink > 1)
    return "it has " + std::to_string(found.st_nlink) +
           " names (hard links), so that another file would change";
  return {};
}

/// First what is there and then a new file: Linux refuses O_CREAT for files of others in sticky folders.
unique_fd open_or_create(const std::filesystem::path& path, int flags, mode_t mode) {
  constexpr int most_attempts = 100;  // others may make and remove it meanwhile
  for (int i = 0; i < most_attempts; ++i) {
    unique_fd there(::open(path.c_str(), flags));
    if (there || errno != ENOENT) return there;
    unique_fd made(::open(path.c_str(), flags | O_CREAT | O_EXCL, mode));
    if (made || errno != EEXIST) return made;
  }
  return {};
}

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));
  return text.data();
}

std::string other_owner(const struct stat& found) {
  if (found.st_uid == ::geteuid() || found.st_uid == 0) return {};
  return "it belongs to another user (" + std::to_string(found.st_uid) + ")";
}

std::string others_who_may(const struct stat& found, mode_t of_group, mode_t of_others, const char* what) {
  auto text = std::string(" may ") + what + " (mode " + octal(found.st_mode) + ")";
  if ((found.st_mode & of_others) != 0) return "everybody" + text;
  // Many systems give each user a group of the same number, and a umask by which it may write.
  bool is_own_group = found.st_gid == 0 || found.st_gid == ::geteuid();
  if ((found.st_mode & of_group) != 0 && !is_own_group)
    return "its group (" + std::to_string(found.st_gid) + ")" + text;
  return {};
}

/// Who may write to a folder may give another one the name of a folder within it. A group that works in one
/// knows that.
std::string open_parent_of(const std::filesystem::path& folder) {
  std::error_code problem;
  auto path = std::filesystem::canonical(folder.empty() ? "." : folder, problem);
  if (problem) return {};
  while (path.has_relative_path()) {
    path = path.parent_path();
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) return {};
    if ((found.st_mode & S_IWOTH) != 0 && (found.st_mode & S_ISVTX) == 0)
      return "everybody may write to " + path.string() + ", in which it is (mode " + octal(found.st_mode) +
             ")";
  }
  return {};
}

}  // namespace

safe_file open_safely(const std::filesystem::path& path, const safe_file_options& options) {
  // O_NONBLOCK: nobody may be at the other end of a pipe.
  constexpr int always = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  auto opened = open_or_create(path, O_RDWR | always | options.flags, options.mode);
  // A file of another user that is only to be locked.
  if (!opened && errno == EACCES && options.owner == file_owner::anyone)
    opened = unique_fd(::open(path.c_str(), O_RDONLY | always));
  if (!opened) return failed(errno);
  struct stat found {};
  if (::fstat(opened.get(), &found) != 0) return failed(errno);
  if (auto problem = problem_of(found, options.owner); !problem.empty()) return {{}, problem, 0};
  bool is_own = found.st_uid == ::geteuid();
  if (is_own && (found.st_mode & 07777) != options.mode && ::fchmod(opened.get(), options.mode) != 0)
    return failed(errno);
  if (options.content == file_content::truncated && ::ftruncate(opened.get(), 0) != 0) return failed(errno);
  return {std::move(opened), {}, 0};
}

safe_file create_anew(const std::filesystem::path& path, mode_t mode) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed(errno);
  unique_fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!made) return failed(errno);
  return {std::move(made), {}, 0};
}

std::string others_who_may_change(const std::filesystem::path& folder) {
  struct stat found {};
  if (::stat(folder.empty() ? "." : folder.c_str(), &found) != 0) return {};
  if (auto owner = other_owner(found); !owner.empty()) return owner;
  if ((found.st_mode & S_ISVTX) != 0) return {};
  auto problem = others_who_may(found, S_IWGRP, S_IWOTH, "write to it");
  return problem.empty() ? open_parent_of(folder) : problem;
}

std::string others_who_may_read(const std::filesystem::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0 || found.st_nlink == 0) return {};
  if (auto owner = other_owner(found); !owner.empty()) return owner;
  return others_who_may(found, S_IRGRP, S_IROTH, "read it");
}

}  // namespace troupe::posix
