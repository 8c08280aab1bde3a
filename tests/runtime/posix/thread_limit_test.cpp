#include "troupe/posix/thread_limit.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "support/temp_folder.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("the least limit of a control group and those around it counts, in both versions") {
  testing::temp_folder folder;
  auto root = folder.path() / "cgroup";
  std::filesystem::create_directories(root / "user/job");
  std::filesystem::create_directories(root / "pids/box");
  auto proc = folder.path() / "own";
  std::ofstream(root / "user/job/pids.max") << "max\n";
  std::ofstream(root / "user/pids.max") << "40\n";
  std::ofstream(root / "pids/box/pids.max") << "7\n";
  std::ofstream(proc) << "0::/user/job\n";
  auto second = read_thread_limits(proc, root);
  CHECK(second.of_control_group == 40);
  CHECK(second.control_group_file == root / "user/pids.max");
  std::ofstream(proc) << "5:cpu:/\n4:pids:/box\n";
  CHECK(read_thread_limits(proc, root).of_control_group == 7);
  CHECK_FALSE(read_thread_limits(folder.path() / "none", root).of_control_group);
}

TEST_CASE("limits of threads are named with where they are set and what to do") {
  CHECK_THAT(describe({.of_user = 6, .of_control_group = {}, .control_group_file = {}}),
             ContainsSubstring("is 6 (ulimit -u)") && ContainsSubstring("Raise it"));
  CHECK_THAT(describe({.of_user = {}, .of_control_group = 20, .control_group_file = "/sys/pids.max"}),
             ContainsSubstring("is 20 (/sys/pids.max)") && ContainsSubstring("--pids-limit"));
  CHECK_THAT(describe({}), ContainsSubstring("memory may have run out"));
}

TEST_CASE("threads that can be started are counted") { CHECK(count_startable_threads(3) == 3); }
