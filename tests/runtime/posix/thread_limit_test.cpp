#include "troupe/posix/thread_limit.hpp"

#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::posix;
using Catch::Matchers::ContainsSubstring;

namespace {

/// /proc and /sys/fs/cgroup as files of the test.
struct made_limits {
  testing::temp_folder folder;
  std::filesystem::path proc = folder.path() / "proc", groups = folder.path() / "cgroup";

  void write(const std::filesystem::path& file, const std::string& text) const {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void write_system(int threads) const {
    write(proc / "loadavg", "0.20 0.18 0.12 1/" + std::to_string(threads) + " 11206");
    write(proc / "sys/kernel/threads-max", "5000");
    write(proc / "sys/kernel/pid_max", "4000");
  }
  thread_limits read() const { return read_thread_limits(proc, groups); }
};

/// With no limit of the user's beside those of the test.
void without_limit_of_user(const std::function<void()>& body) {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NPROC, &before) == 0);
  auto raised = before;
  raised.rlim_cur = raised.rlim_max;
  auto present = read_thread_limits();
  if (raised.rlim_max < 10000 || present.of_address_space || present.of_data)
    SKIP("this process has limits of its own");
  REQUIRE(::setrlimit(RLIMIT_NPROC, &raised) == 0);
  body();
  REQUIRE(::setrlimit(RLIMIT_NPROC, &before) == 0);
}

}  // namespace

TEST_CASE("the least limit of a control group and those around it counts, in both versions") {
  made_limits made;
  made.write(made.groups / "user/job/pids.max", "max");
  made.write(made.groups / "user/pids.max", "40");
  made.write(made.groups / "pids/box/pids.max", "7");
  made.write(made.proc / "self/cgroup", "0::/user/job");
  auto second = made.read();
  CHECK(second.of_control_group == 40);
  CHECK(second.control_group_file == made.groups / "user/pids.max");
  made.write(made.proc / "self/cgroup", "5:cpu:/\n4:pids:/box");
  CHECK(made.read().of_control_group == 7);
  std::filesystem::remove_all(made.proc);
  CHECK_FALSE(made.read().of_control_group);
}

TEST_CASE("the threads left are those below the nearest limit, of the system, a control group and the user") {
  without_limit_of_user([] {
    made_limits made;
    CHECK_FALSE(made.read().left);  // nothing is known
    made.write_system(1000);
    CHECK(made.read().left == 3000);  // below pid_max
    made.write(made.proc / "self/cgroup", "0::/user/job");
    made.write(made.groups / "user/job/pids.max", "600");
    made.write(made.groups / "user/job/pids.current", "100");
    CHECK(made.read().left == 500);
    made.write(made.groups / "user/pids.max", "900");  // more than the other, but nearer
    made.write(made.groups / "user/pids.current", "880");
    CHECK(made.read().left == 20);
    std::filesystem::remove(made.groups / "user/pids.current");
    CHECK(made.read().left == 0);  // not known: taken for full
    made.write_system(6000);
    CHECK(made.read().left == 0);
  });
  without_limit_of_user([] {
    made_limits made;
    made.write_system(100);
    rlimit limit{};
    ::getrlimit(RLIMIT_NPROC, &limit);
    auto few = limit;
    few.rlim_cur = 150;
    REQUIRE(::setrlimit(RLIMIT_NPROC, &few) == 0);
    auto left = made.read().left;
    REQUIRE(::setrlimit(RLIMIT_NPROC, &limit) == 0);
    CHECK(left == 50);
  });
}

TEST_CASE("limits of threads are named with where they are set and what to do") {
  thread_limits of_user, of_group, of_memory;
  of_user.of_user = 6;
  CHECK_THAT(describe(of_user), ContainsSubstring("is 6 (ulimit -u)") && ContainsSubstring("Raise it"));
  of_group.of_control_group = 20;
  of_group.control_group_file = "/sys/pids.max";
  CHECK_THAT(describe(of_group),
             ContainsSubstring("is 20 (/sys/pids.max)") && ContainsSubstring("--pids-limit"));
  of_memory.of_address_space = 500'000;
  of_memory.of_data = 90'000;
  CHECK_THAT(describe(of_memory), ContainsSubstring("limited to 500000 KiB (ulimit -v)") &&
                                      ContainsSubstring("limited to 90000 KiB (ulimit -d)") &&
                                      ContainsSubstring("h_vmem"));
  CHECK_THAT(describe({}), ContainsSubstring("memory may have run out"));
}

TEST_CASE("threads that can be started are counted") { CHECK(count_startable_threads(3) == 3); }
