#include "troupe/posix/files/readable_memory.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>

using troupe::posix::problem_of_reading_this_process;

namespace {

constexpr uid_t user = 64333;

/// Of a process that the system may trace or not; root may read all.
int problem_in_process(int is_dumpable) {
  auto child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(user) != 0 || ::setuid(user) != 0)) ::_exit(255);
    ::prctl(PR_SET_DUMPABLE, is_dumpable, 0, 0, 0);
    ::_exit(troupe::posix::problem_of_reading_this_process());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a process knows whether others of its user may read its memory, and leaves no process behind") {
  if (problem_in_process(1) != 0) SKIP("this system lets no process read another one's memory");
  CHECK(problem_in_process(0) == EPERM);
  CHECK(problem_in_process(1) == 0);
  CHECK(troupe::posix::problem_of_reading_this_process() == 0);
  CHECK(::waitpid(-1, nullptr, __WALL | WNOHANG) == -1);
}
