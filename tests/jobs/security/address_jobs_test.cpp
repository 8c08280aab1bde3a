// Jobs whose rank 0 is named in ways that differ from host to host, between two network namespaces.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <memory>

#include "jobs/job.hpp"
#include "support/processes/joined_namespaces.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

/// One of two members, each on a host that knows the names in its own file.
run_options named_member(int rank, const joined_namespaces& hosts, const std::filesystem::path& names,
                         const std::string& master, const words& network) {
  run_options options;
  options.command = {"ip",
                     "netns",
                     "exec",
                     hosts.name(rank),
                     "unshare",
                     "--mount",
                     "sh",
                     "-c",
                     "mount --bind \"$0\" /etc/hosts && exec \"$@\"",
                     names.string(),
                     FASHION_MNIST_PROGRAM};
  for (const auto& more : {network, small_job(), words{"--json", "--stages", "2"}})
    options.command.insert(options.command.end(), more.begin(), more.end());
  options.environment = {
      {"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"},      {"LOCAL_RANK", "0"},
      {"MASTER_ADDR", master},        {"MASTER_PORT", "29500"}, {"TROUPE_JOB_SECRET", std::string(64, 'a')}};
  options.deadline = std::chrono::minutes(4);
  return options;
}

const words over_the_cable{"--network-interface", joined_namespaces::interface};

}  // namespace

TEST_CASE("members wait until rank 0's name has an address", "[addresses]") {
  joined_namespaces hosts;
  temp_folder folder;
  auto names = folder.path() / "hosts";
  write(names, "127.0.0.1 localhost\n");
  background_process first(named_member(0, hosts, names, "rank0.test", over_the_cable)),
      second(named_member(1, hosts, names, "rank0.test", over_the_cable));
  for (auto* each : {&first, &second}) each->wait_for_line("trying again until --join-timeout");
  write(names, "127.0.0.1 localhost\n" + joined_namespaces::address(0) + " rank0.test\n");
  for (auto* each : {&first, &second}) {
    auto result = each->wait();
    INFO(result.output << result.errors);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("a name that is a loopback address on rank 0's own host is reached from others", "[addresses]") {
  joined_namespaces hosts;
  temp_folder folder;
  auto here = folder.path() / "here", there = folder.path() / "there";
  write(here, "127.0.0.1 localhost\n127.0.1.1 rank0.test\n");  // as Debian's installer writes it
  write(there, joined_namespaces::address(0) + " rank0.test\n");
  background_process first(named_member(0, hosts, here, "rank0.test", over_the_cable)),
      second(named_member(1, hosts, there, "rank0.test", over_the_cable));
  auto result = first.wait();
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors,
             ContainsSubstring("'rank0.test' is 127.0.1.1 here, which other hosts cannot reach"));
  CHECK(second.wait().exit_code == 0);
}

TEST_CASE("a job on two hosts that was given no network is told of --network-interface", "[addresses]") {
  joined_namespaces hosts;
  temp_folder folder;
  auto names = folder.path() / "hosts";
  write(names, "127.0.0.1 localhost\n");
  auto master = joined_namespaces::address(0);
  background_process first(named_member(0, hosts, names, master, {})),
      second(named_member(1, hosts, names, master, {}));
  for (auto* each : {&first, &second}) {
    auto result = each->wait();
    INFO(result.output << result.errors);
    CHECK(result.exit_code != 0);
    CHECK_THAT(result.errors, ContainsSubstring("--network-interface lo, which reaches this host only") &&
                                  ContainsSubstring(master));
  }
}
