#include "troupe/files/folder_lock.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "troupe/files/open_file.hpp"
#include "troupe/files/printable_text.hpp"
#include "troupe/posix/files/safe_file.hpp"

namespace troupe::files {
namespace {

using namespace std::chrono_literals;

constexpr auto lock_file_name = "job.lock";
/// Processes of a job that was stopped or killed may take a moment to end.
constexpr auto longest_wait = 3s;
constexpr auto between_attempts = 20ms;

/// Whoever may open the file may lock it, and so keep jobs out. Those are the users that may write to the
/// folder, who could remove the file as well.
mode_t lock_mode(const std::filesystem::path& folder) {
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) return 0600;
  // With the sticky bit others may add files, and not remove this one.
  if ((found.st_mode & S_ISVTX) != 0) return 0600;
  mode_t mode = 0600;
  if ((found.st_mode & S_IWGRP) != 0) mode |= 0060;
  if ((found.st_mode & S_IWOTH) != 0) mode |= 0006;
  return mode;
}

posix::unique_fd open_lock(const std::filesystem::path& folder) {
  auto file = folder / lock_file_name;
  auto opened = posix::open_safely(file, {.mode = lock_mode(folder), .owner = posix::file_owner::anyone});
  if (opened.fd) return std::move(opened.fd);
  bool is_link = opened.error_number == ELOOP;
  if (opened.error_number != 0 && !is_link) fail_on_file("open", file, opened.error_number);
  throw snapshot_error("cannot open " + file.string() + ": " + opened.problem +
                       ". Remove it, or choose another folder");
}

/// Returns 0 or errno.
int try_lock(const posix::unique_fd& file, int operation) {
  return ::flock(file.get(), operation | LOCK_NB) == 0 ? 0 : errno;
}

int lock_in_time(const posix::unique_fd& file, int operation) {
  auto limit = std::chrono::steady_clock::now() + longest_wait;
  auto problem = try_lock(file, operation);
  while (problem == EWOULDBLOCK && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(between_attempts);
    problem = try_lock(file, operation);
  }
  return problem;
}

std::string owner_in(const posix::unique_fd& file) {
  std::array<char, 200> text{};
  auto count = ::pread(file.get(), text.data(), text.size(), 0);
  return count > 0 ? printable(std::string_view(text.data(), static_cast<std::size_t>(count)))
                   : "another job";
}

/// Who holds the lock is only said in messages, so that a disk that is full changes nothing.
void write_owner(const posix::unique_fd& file, const std::string& owner) {
  if (::ftruncate(file.get(), 0) == 0) [[maybe_unused]]
    auto written = ::pwrite(file.get(), owner.data(), owner.size(), 0);
}

}  // namespace

folder_lock::folder_lock(const std::filesystem::path& folder, lock_role role, const std::string& owner)
    : file_(open_lock(folder)) {
  auto problem = lock_in_time(file_, role == lock_role::begins ? LOCK_EX : LOCK_SH);
  if (problem == 0 && role == lock_role::begins) {
    write_owner(file_, owner);
    problem = try_lock(file_, LOCK_SH);  // another job may begin between the two
  }
  if (problem == EWOULDBLOCK)
    throw folder_in_use("the folder " + folder.string() + " is in use by " + owner_in(file_) +
                        ". Wait until that job has ended, or choose another folder");
  is_held_ = problem == 0;
}

}  // namespace troupe::files
