// What a process is told where the system has less than it needs: each case is a child with that system.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>

#include "support/processes/spawn_ranks.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/posix/files/memory_file.hpp"
#include "troupe/posix/sockets/interface_address.hpp"
#include "troupe/posix/sysv_limits.hpp"

using namespace troupe;
using namespace troupe::posix;
using namespace troupe::testing;

namespace {

void expect_text(const std::string& text, const std::string& wanted) {
  expect(text.find(wanted) != text.npos, "'" + wanted + "' in '" + text + "'");
}

template <class Failure>
std::string text_of_failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

void without_network(test_rank&) {
  expect(::unshare(CLONE_NEWNET) == 0, "a network namespace of its own");  // its lo is down
  expect_text(text_of_failure<bad_input>([] { address_of_interface("lo"); }),
              "network interface 'lo' is down: bring it up with `ip link set lo up`");
  expect_text(text_of_failure<bad_input>([] { address_of_interface("eth7"); }),
              "'eth7' does not exist; there are: lo (down)");
}

void without_segments(test_rank&) {
  expect(::unshare(CLONE_NEWIPC) == 0, "an IPC namespace of its own");
  auto segment = ::shmget(IPC_PRIVATE, 8192, 0600);
  expect(segment >= 0, "a segment");
  auto limits = read_sysv_limits();
  expect(limits.used_segments == 1 && limits.used_pages == 2, "one segment of two pages");
  expect(limits.max_segments > 1 && limits.max_segment_bytes > 8192, "limits");
  expect_text(to_text(limits), "1 of " + std::to_string(limits.max_segments) + " segments (kernel.shmmni)");
  ::shmctl(segment, IPC_RMID, nullptr);
}

/// As a container's seccomp profile does.
void refuse_memory_files() {
  std::array program{
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_memfd_create},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  sock_fprog all{program.size(), program.data()};
  expect(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  expect(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0, "a filter of system calls");
}

void without_memory_files(test_rank&) {
  refuse_memory_files();
  auto text =
      text_of_failure<system_failure>([] { make_memory_file("troupe-test", "make a shared segment"); });
  expect_text(text,
              "make a shared segment (memfd_create is refused here, as by a container's seccomp profile");
  expect_text(text, "Operation not permitted");
}

}  // namespace

TEST_CASE("an interface that is down is told from one that does not exist") {
  if (::geteuid() != 0) SKIP("a network namespace needs root");
  spawn_ranks(1, without_network);
}

TEST_CASE("limits of System V shared memory are read with what is in use") {
  if (::geteuid() != 0) SKIP("an IPC namespace needs root");
  spawn_ranks(1, without_segments);
}

TEST_CASE("a system that refuses memory files is named as the cause") {
  spawn_ranks(1, without_memory_files);
}
