#include "troupe/snapshot/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

#include "troupe/snapshot/open_file.hpp"
#include "troupe/snapshot/printable_text.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr auto lock_file_name = "job.lock";
/// Processes of a job that was stopped or killed may take a moment to end.
constexpr auto longest_wait = 3s;
constexpr auto between_attempts = 20ms;

unique_fd open_lock(const std::filesystem::path& file) {
  unique_fd opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  // Another user's file: reading is enough for a lock.
  if (!opened && errno == EACCES) opened = unique_fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) fail_on_file("open", file, errno);
  return opened;
}

/// Returns 0 or errno.
int try_lock(const unique_fd& file, int operation) {
  return ::flock(file.get(), operation | LOCK_NB) == 0 ? 0 : errno;
}

int lock_in_time(const unique_fd& file, int operation) {
  auto limit = std::chrono::steady_clock::now() + longest_wait;
  auto problem = try_lock(file, operation);
  while (problem == EWOULDBLOCK && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(between_attempts);
    problem = try_lock(file, operation);
  }
  return problem;
}

std::string owner_in(const unique_fd& file) {
  std::array<char, 200> text{};
  auto count = ::pread(file.get(), text.data(), text.size(), 0);
  return count > 0 ? printable(std::string_view(text.data(), static_cast<std::size_t>(count)))
                   : "another job";
}

/// Who holds the lock is only said in messages, so that a disk that is full changes nothing.
void write_owner(const unique_fd& file, const std::string& owner) {
  if (::ftruncate(file.get(), 0) == 0) [[maybe_unused]]
    auto written = ::pwrite(file.get(), owner.data(), owner.size(), 0);
}

}  // namespace

folder_lock::folder_lock(const std::filesystem::path& folder, lock_role role, const std::string& owner)
    : file_(open_lock(folder / lock_file_name)) {
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

}  // namespace troupe
