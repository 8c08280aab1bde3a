#include "orphan_guard.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

// The following functions run after fork() in a process that had threads: only system calls, no heap.

/// The record that getdents64 writes.
struct directory_entry {
  std::uint64_t inode;
  std::int64_t next;
  unsigned short size_bytes;
  unsigned char type;
  char name[1];
};

/// Whether the bytes read from `fd` contain `wanted`, which has at most 256 bytes.
bool holds(int fd, const char* wanted, std::size_t size) {
  std::array<char, 4096> bytes;
  bytes[0] = 0;  // as if a variable ended before the first one
  std::size_t kept = 1;
  while (true) {
    auto got = ::read(fd, bytes.data() + kept, bytes.size() - kept);
    if (got <= 0) return false;
    auto total = kept + static_cast<std::size_t>(got);
    if (::memmem(bytes.data(), total, wanted, size)) return true;
    kept = total < size ? total : size;
    ::memmove(bytes.data(), bytes.data() + total - kept, kept);
  }
}

pid_t process_id(const char* name) {
  pid_t pid = 0;
  for (; *name >= '0' && *name <= '9'; ++name) pid = pid * 10 + (*name - '0');
  return *name ? 0 : pid;
}

/// Kills the process of the /proc entry `name` if it belongs to the job.
bool kill_if_of_job(int proc, const char* name, const char* variable, std::size_t size) {
  auto pid = process_id(name);
  if (pid <= 0 || pid == ::getpid()) return false;
  std::array<char, 32> path{};
  ::strncpy(path.data(), name, 20);
  ::strcat(path.data(), "/environ");
  int environment = ::openat(proc, path.data(), O_RDONLY | O_CLOEXEC);
  if (environment < 0) return false;
  bool found = holds(environment, variable, size);
  ::close(environment);
  return found && ::kill(pid, SIGKILL) == 0;
}

/// Kills all processes of the job and returns their number.
int kill_all_of_job(const char* variable, std::size_t size) {
  int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return 0;
  int killed = 0;
  alignas(directory_entry) std::array<char, 8192> entries;
  for (long got; (got = ::syscall(SYS_getdents64, proc, entries.data(), entries.size())) > 0;)
    for (long at = 0; at < got;) {
      auto* entry = reinterpret_cast<directory_entry*>(entries.data() + at);
      killed += kill_if_of_job(proc, entry->name, variable, size);
      at += entry->size_bytes;
    }
  ::close(proc);
  return killed;
}

/// Waits until the launcher writes (it has ended the job) or its end of the pipe closes (it was killed).
[[noreturn]] void guard(int launcher_lives, const char* variable, std::size_t size) {
  ::setsid();
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
  // This process inherits the launcher's output pipes and closes them, so that readers do not wait for it.
  ::dup2(launcher_lives, 0);
  ::syscall(SYS_close_range, 1U, ~0U, 0U);
  char byte;
  if (::read(0, &byte, 1) > 0) ::_exit(0);
  // Killed processes may have started others just before, and exist for a moment after the signal.
  timespec pause{0, 20'000'000};
  for (int quiet = 0, rounds = 0; quiet < 3 && rounds < 500; ++rounds, ::nanosleep(&pause, nullptr))
    quiet = kill_all_of_job(variable, size) ? 0 : quiet + 1;
  ::_exit(0);
}

}  // namespace

orphan_guard::orphan_guard(const std::string& job_id) {
  int ends[2];
  check_posix(::pipe2(ends, O_CLOEXEC), "make a pipe");
  unique_fd read_end(ends[0]);
  launcher_lives_ = unique_fd(ends[1]);
  using std::string_literals::operator""s;
  auto variable = "\0TROUPE_JOB_ID="s + job_id + "\0"s;
  pid_ = static_cast<pid_t>(check_posix(::fork(), "start a process"));
  if (pid_ == 0) guard(read_end.get(), variable.data(), variable.size());
}

orphan_guard::~orphan_guard() {
  [[maybe_unused]] auto told = ::write(launcher_lives_.get(), "", 1);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace troupe
