#include "memory_kills.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("each kill for lack of memory explains one killed process, and names the limit") {
  temp_folder folder;
  auto root = folder.path() / "cgroup";
  write(folder.path() / "self", "0::/jobs/a\n");
  write(root / "jobs/a/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
  write(root / "jobs/a/memory.max", "4194304\n");
  memory_kills kills(find_memory_kill_counter(folder.path() / "self", root));
  CHECK(kills.explain().empty());
  write(root / "jobs/a/memory.events", "low 0\noom 5\noom_kill 4\noom_group_kill 0\n");
  for (int i = 0; i < 2; ++i)
    CHECK_THAT(kills.explain(),
               ContainsSubstring("memory ran out") && ContainsSubstring("memory.max is 4194304 bytes"));
  CHECK(kills.explain().empty());
}

TEST_CASE("the counter of version 1, and of a container that sees its own group only, is found") {
  temp_folder folder;
  auto root = folder.path() / "cgroup";
  write(folder.path() / "self", "11:cpu,cpuacct:/docker/12ab\n7:memory:/docker/12ab\n0::/docker/12ab\n");
  write(root / "memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  write(root / "memory/memory.limit_in_bytes", "1048576\n");
  memory_kills kills(find_memory_kill_counter(folder.path() / "self", root));
  write(root / "memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  CHECK_THAT(kills.explain(), ContainsSubstring("memory.limit_in_bytes is 1048576 bytes"));
}

TEST_CASE("without a control group no kill is explained") {
  temp_folder folder;
  CHECK_FALSE(find_memory_kill_counter(folder.path() / "none", folder.path()));
  CHECK(memory_kills(std::nullopt).explain().empty());
}
