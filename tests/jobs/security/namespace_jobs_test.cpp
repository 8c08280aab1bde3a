// Jobs whose members are in namespaces of their own, as in containers.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <memory>

#include "jobs/job.hpp"
#include "support/processes/joined_namespaces.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string weights_in(const process_result& result) {
  const std::string before = "\"weights_sha256\":\"";
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  auto found = result.output.find(before);
  REQUIRE(found != std::string::npos);
  return result.output.substr(found + before.size(), 64);
}

run_options member(int rank, const words& place) {
  run_options options;
  options.command = join(
      join(place, {FASHION_MNIST_PROGRAM, "--json", "--network-interface", joined_namespaces::interface}),
      small_job());
  options.environment = {{"RANK", std::to_string(rank)},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_RANK", std::to_string(rank / 2)},
                         {"MASTER_ADDR", joined_namespaces::address(0)},
                         {"MASTER_PORT", "29500"},
                         {"TROUPE_JOB_SECRET", std::string(64, 'a')}};
  options.deadline = std::chrono::minutes(4);
  return options;
}

/// Four members by hand, two on each host; `isolate` begins the command of each.
void check_same_bits(const words& isolate) {
  joined_namespaces hosts;
  auto wanted = run_local(small_job({"--stages", "4"})).weights_sha256();
  std::vector<std::unique_ptr<background_process>> members;
  for (int rank = 0; rank < 4; ++rank)
    members.push_back(std::make_unique<background_process>(
        member(rank, join({"ip", "netns", "exec", hosts.name(rank % 2)}, isolate))));
  CHECK(weights_in(members[0]->wait()) == wanted);
  for (int rank = 1; rank < 4; ++rank) CHECK(members[static_cast<std::size_t>(rank)]->wait().exit_code == 0);
}

}  // namespace

namespace {

/// Four members on one host, of which every second is in namespaces of its own, as containers of a pod are.
void check_same_bits_on_one_host(const words& isolate) {
  joined_namespaces hosts;
  auto wanted = run_local(small_job({"--stages", "4"})).weights_sha256();
  std::vector<std::unique_ptr<background_process>> members;
  for (int rank = 0; rank < 4; ++rank)
    members.push_back(std::make_unique<background_process>(
        member(rank, join({"ip", "netns", "exec", hosts.name(0)}, rank % 2 == 1 ? isolate : words()))));
  CHECK(weights_in(members[0]->wait()) == wanted);
  for (int rank = 1; rank < 4; ++rank) CHECK(members[static_cast<std::size_t>(rank)]->wait().exit_code == 0);
}

}  // namespace

TEST_CASE("members of one host with namespaces of their own give the same bits over its network",
          "[namespaces]") {
  SECTION("IPC") { check_same_bits_on_one_host({"unshare", "--ipc"}); }
  SECTION("PID") {
    check_same_bits_on_one_host({"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"});
  }
  SECTION("user") { check_same_bits_on_one_host({"unshare", "--user", "--map-root-user"}); }
  SECTION("IPC, PID and UTS") {
    check_same_bits_on_one_host(
        {"unshare", "--ipc", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"});
  }
}

TEST_CASE("members that share neither memory nor an interface are told which option to use", "[namespaces]") {
  joined_namespaces hosts;
  auto isolate = GENERATE(words{"unshare", "--ipc"}, words{"unshare", "--user", "--map-root-user"});
  std::vector<std::unique_ptr<background_process>> members;
  for (int rank = 0; rank < 2; ++rank) {
    run_options options;
    options.command = join({"ip", "netns", "exec", hosts.name(0)}, rank == 1 ? isolate : words());
    options.command = join(join(options.command, {FASHION_MNIST_PROGRAM}), small_job());
    options.environment = {{"RANK", std::to_string(rank)},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", "29500"},
                           {"TROUPE_JOB_SECRET", std::string(64, 'a')}};
    members.push_back(std::make_unique<background_process>(options));
  }
  for (auto& each : members) {
    auto result = each->wait();
    CHECK(result.exit_code != 0);
    CHECK_THAT(result.errors,
               ContainsSubstring("share neither memory") && ContainsSubstring("--network-interface NAME"));
  }
}

TEST_CASE("a job in a PID namespace without a /proc of its own gives the same bits, or says what is missing",
          "[namespaces]") {
  joined_namespaces hosts;
  words isolated{"ip",           "netns",        "exec",   hosts.name(0),      "unshare", "--pid", "--fork",
                 "--kill-child", TROUPE_PROGRAM, "launch", "--nproc-per-node", "2",       "--"};
  words program = join({FASHION_MNIST_PROGRAM, "--json"}, small_job());
  auto run = [&](const words& options) {
    return run_process({.command = join(join(isolated, program), options),
                        .environment = {},
                        .without = {"RANK", "WORLD_SIZE"}});
  };
  CHECK(weights_in(run({"--network-interface", joined_namespaces::interface})) ==
        run_local(small_job({"--stages", "2"})).weights_sha256());
  auto refused = run({});
  CAPTURE(refused.errors);
  CHECK(refused.exit_code != 0);
  CHECK_THAT(refused.errors, ContainsSubstring("/proc shows another PID namespace, as here"));
}

TEST_CASE("members that share IPC but not the network give the same bits as one process", "[namespaces]") {
  check_same_bits({});
}

TEST_CASE("members with IPC, PID and UTS namespaces of their own give the same bits as one process",
          "[namespaces]") {
  check_same_bits({"unshare", "--ipc", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"});
}

namespace {

/// Four members on two hosts that write snapshots; ranks 1 and 3 are on the second host, where `mount` makes
/// the folder's parent another one.
std::vector<process_result> train_with_snapshots(const std::filesystem::path& parent,
                                                 const std::string& mount) {
  joined_namespaces hosts;
  std::vector<std::unique_ptr<background_process>> members;
  for (int rank = 0; rank < 4; ++rank) {
    auto place = join({"ip", "netns", "exec", hosts.name(rank % 2), "unshare", "--mount", "sh", "-c"},
                      {(rank % 2 == 1 ? mount : "true") + " && exec \"$@\"", parent.string()});
    auto options = member(rank, place);
    options.command = join(options.command, {"--stages", "4", "--snapshot-dir", (parent / "run").string()});
    members.push_back(std::make_unique<background_process>(options));
  }
  std::vector<process_result> results;
  for (auto& each : members) results.push_back(each->wait());
  return results;
}

}  // namespace

TEST_CASE(
    "snapshots go to a folder that hosts share, and one that each has for itself is refused at the start",
    "[namespaces]") {
  temp_folder parent;
  auto folder = (parent.path() / "run").string();
  SECTION("shared") {
    for (const auto& result : train_with_snapshots(parent.path(), "true")) CHECK(result.exit_code == 0);
    CHECK(std::filesystem::exists(parent.path() / "run" / "step-000000000012" / "manifest.json"));
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      CHECK(entry.path().filename().string().find("marker") == std::string::npos);
  }
  SECTION("each for itself") {
    auto results = train_with_snapshots(parent.path(), "mount -t tmpfs none \"$0\"");
    for (const auto& result : results) CHECK(result.exit_code == 2);
    CHECK_THAT(results[0].errors,
               ContainsSubstring("--snapshot-dir: the folder " + folder + " is not the same one") &&
                   ContainsSubstring("is not seen by rank 1 on ") && ContainsSubstring(", rank 3 on ") &&
                   ContainsSubstring("Name a folder that all hosts share"));
    CHECK_THAT(results[1].errors, ContainsSubstring("rank 0 says why"));
  }
}
