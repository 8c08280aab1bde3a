#include "troupe/posix/files/readable_memory.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "troupe/posix/unique_fd.hpp"

namespace troupe::posix {
namespace {

/// In the new process, which has one thread and calls nothing but the system.
[[noreturn]] void try_to_read(pid_t process, std::uint64_t& there, int answer) {
  std::uint64_t copy = 0;
  iovec to{&copy, sizeof copy}, from{&there, sizeof there};
  auto size = ::syscall(SYS_process_vm_readv, process, &to, 1, &from, 1, 0);
  int problem = size == sizeof copy ? 0 : errno;
  ::syscall(SYS_write, answer, &problem, sizeof problem);
  while (true) ::syscall(SYS_exit_group, 0);
}

/// Whether this process may read its parent's memory. The kernel checks that before it looks at the address,
/// and nothing is mapped at 0.
bool may_read_parent() {
  std::uint64_t copy = 0;
  iovec to{&copy, sizeof copy}, from{nullptr, sizeof copy};
  return ::syscall(SYS_process_vm_readv, ::getppid(), &to, 1, &from, 1, 0) < 0 && errno == EFAULT;
}

}  // namespace

int problem_of_reading_this_process() {
  // As UCX does for "cma": Yama lets processes of a user read each other's memory only if they allow it. It
  // fails without Yama, where it is not needed.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1 && may_read_parent()) return 0;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return 0;  // not known
  unique_fd answer(ends[0]), question(ends[1]);
  std::uint64_t there = 1;
  auto self = ::getpid();
  // Not fork(), whose handlers belong to libraries. Without SIGCHLD, which would be the caller's.
  auto child = ::syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) try_to_read(self, there, question.get());
  question.reset();
  if (child < 0) return 0;
  int problem = 0;
  while (::read(answer.get(), &problem, sizeof problem) < 0 && errno == EINTR) {
  }
  while (::waitpid(static_cast<pid_t>(child), nullptr, __WALL) < 0 && errno == EINTR) {
  }
  return problem;
}

}  // namespace troupe::posix
