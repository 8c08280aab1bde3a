#include "orphan_guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/proc_folder.hpp"

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

/// The path of a file of a process, for openat.
std::array<char, 32> path_of(const char* name, const char* file) {
  std::array<char, 32> path{};
  ::strncpy(path.data(), name, 20);
  ::strcat(path.data(), file);
  return path;
}

/// Sends a signal to the process of the /proc entry `name` if it belongs to the job.
bool signal_if_of_job(int number, int proc, const char* name, const char* variable, std::size_t size) {
  auto pid = process_id(name);
  if (pid <= 0 || pid == ::getpid()) return false;
  int environment = ::openat(proc, path_of(name, "/environ").data(), O_RDONLY | O_CLOEXEC);
  if (environment < 0) return false;
  bool found = holds(environment, variable, size);
  ::close(environment);
  return found && ::kill(pid, number) == 0;
}

/// Sends a signal to all processes of the job and returns their number.
int signal_all_of_job(int number, const char* variable, std::size_t size) {
  if (!posix::proc_is_of_this_namespace()) return 0;  // its numbers are those of other processes here
  int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return 0;
  int signalled = 0;
  alignas(directory_entry) std::array<char, 8192> entries;
  for (long got; (got = ::syscall(SYS_getdents64, proc, entries.data(), entries.size())) > 0;)
    for (long at = 0; at < got;) {
      auto* entry = reinterpret_cast<directory_entry*>(entries.data() + at);
      signalled += signal_if_of_job(number, proc, entry->name, variable, size);
      at += entry->size_bytes;
    }
  ::close(proc);
  return signalled;
}

/// Whether a process is stopped, by a signal or a debugger. Its state follows its name, which is in
/// parentheses and may contain some, in /proc/PID/stat.
bool is_stopped(const char* stat_path) {
  if (!posix::proc_is_of_this_namespace()) return false;
  int file = ::open(stat_path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 512> bytes;
  auto got = ::read(file, bytes.data(), bytes.size());
  ::close(file);
  auto* end =
      got > 0 ? static_cast<char*>(::memrchr(bytes.data(), ')', static_cast<std::size_t>(got))) : nullptr;
  if (!end || end + 2 >= bytes.data() + got) return false;
  return end[2] == 'T' || end[2] == 't';
}

/// Waits until the launcher writes (it has ended the job): true, or its end of the pipe closes (it was
/// killed): false. Meanwhile the job's processes are stopped while the launcher is, which cannot do that
/// itself at SIGSTOP.
bool wait_for_end(const char* launcher_stat, const char* variable, std::size_t size) {
  constexpr int interval_ms = 200;
  bool holds_job = false;
  pollfd pipe{0, POLLIN, 0};
  while (::poll(&pipe, 1, interval_ms) <= 0) {
    if (is_stopped(launcher_stat) == holds_job) continue;
    holds_job = !holds_job;
    signal_all_of_job(holds_job ? SIGSTOP : SIGCONT, variable, size);
  }
  if (holds_job) signal_all_of_job(SIGCONT, variable, size);
  char byte;
  return ::read(0, &byte, 1) > 0;
}

/// Kills the job's processes until three looks in a row find none: they may have started others just before,
/// exist for a moment after the signal, and show no environment while they begin another program. Returns how
/// many there were at the first look that found any.
int kill_all_of_job(const char* variable, std::size_t size) {
  timespec pause{0, 20'000'000};
  int killed = 0;
  for (int quiet = 0, rounds = 0; quiet < 3 && rounds < 500; ++rounds, ::nanosleep(&pause, nullptr)) {
    auto found = signal_all_of_job(SIGKILL, variable, size);
    quiet = found > 0 ? 0 : quiet + 1;
    if (killed == 0) killed = found;
  }
  return killed;
}

[[noreturn]] void guard(int launcher_lives, const char* launcher_stat, const char* variable,
                        std::size_t size) {
  ::setsid();
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
  // This process inherits the launcher's output pipes and closes them, so that readers do not wait for it.
  ::dup2(launcher_lives, 0);
  ::syscall(SYS_close_range, 1U, ~0U, 0U);
  if (wait_for_end(launcher_stat, variable, size)) ::_exit(0);
  kill_all_of_job(variable, size);
  ::_exit(0);
}

}  // namespace

namespace {

using std::string_literals::operator""s;

std::string variable_of(const std::string& job_id) { return "\0TROUPE_JOB_ID="s + job_id + "\0"s; }

}  // namespace

int kill_processes_of_job(const std::string& job_id) {
  auto variable = variable_of(job_id);
  return kill_all_of_job(variable.data(), variable.size());
}

orphan_guard::orphan_guard(const std::string& job_id) {
  int ends[2];
  check_posix(::pipe2(ends, O_CLOEXEC), "make a pipe");
  posix::unique_fd read_end(ends[0]);
  launcher_lives_ = posix::unique_fd(ends[1]);
  auto variable = variable_of(job_id);
  auto launcher_stat = "/proc/" + std::to_string(::getpid()) + "/stat";
  pid_ = static_cast<pid_t>(check_posix(::fork(), "start a process"));
  if (pid_ == 0) guard(read_end.get(), launcher_stat.c_str(), variable.data(), variable.size());
}

orphan_guard::~orphan_guard() {
  [[maybe_unused]] auto told = ::write(launcher_lives_.get(), "", 1);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace troupe
