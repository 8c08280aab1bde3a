#include <grp.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>

#include "support/processes/system_v_segments.hpp"
#include "ucx_process.hpp"

using namespace troupe::testing;

namespace {

constexpr uid_t owner = 64321, other = 64322;
constexpr gid_t shared_group = 64321;

void become(uid_t user) {
  expect(::setgroups(0, nullptr) == 0 && ::setgid(shared_group) == 0 && ::setuid(user) == 0, "another user");
  ::prctl(PR_SET_DUMPABLE, 1);  // as a process that was started by this user
}

/// Ranks 0 and 1 are a job of one user, rank 2 is another user of the same group.
void job_beside_another_user(test_rank& self) {
  become(self.rank() == 2 ? other : owner);
  if (self.rank() == 2) {
    self.wait_for(0, 1);
    auto segments = segments_of(owner);
    expect(!segments.empty(), "tensors go through segments");
    for (const auto& segment : segments) {
      expect(::shmat(segment.id, nullptr, 0) == reinterpret_cast<void*>(-1) && errno == EACCES,
             "no writing to a segment");
      expect(::shmat(segment.id, nullptr, SHM_RDONLY) == reinterpret_cast<void*>(-1) && errno == EACCES,
             "no reading of a segment");
    }
    self.post(2);
    return;
  }
  ucx_process process(self);
  process.join(1, {0, 1});
  // Many at once, announced and not fetched yet, so that UCX makes more segments than it began with.
  for (std::uint64_t step = 0; step < 2000; ++step)
    process.link().send_tensor(1 - self.rank(), {1, step}, pattern(20000, step));
  expect(process.events.take_tensors(2000).size() == 2000, "all came");
  self.post(1);
  self.wait_for(1 - self.rank(), 1);
  self.wait_for(2, 2);
}

}  // namespace

TEST_CASE("another user of the group reaches none of a job's shared memory") {
  if (::geteuid() != 0) SKIP("processes of two users are needed: run the test as root");
  spawn_ranks(3, job_beside_another_user);
}
