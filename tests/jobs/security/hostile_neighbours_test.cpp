// Whole jobs on a machine with hostile processes.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "jobs/job.hpp"
#include "jobs/security/flood.hpp"
#include "support/processes/joined_namespaces.hpp"
#include "support/processes/system_v_segments.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;

namespace {

std::string undisturbed_weights() { return run_local(small_job({"--stages", "4"})).weights_sha256(); }

}  // namespace

TEST_CASE("only a job's user can access the shared memory of its tensors", "[hostile_neighbours]") {
  if (::geteuid() != 0) SKIP("the job runs as a user of its own: run the test as root");
  constexpr uid_t user = 64331;
  auto id = std::to_string(user);
  run_options options;
  options.command = join({"setpriv", "--reuid", id, "--regid", id, "--clear-groups", TROUPE_PROGRAM, "launch",
                          "--nproc-per-node", "4", "--", FASHION_MNIST_PROGRAM, "--json"},
                         {"--steps", "200", "--batch", "64", "--microbatches", "4"});
  options.without = {"RANK", "WORLD_SIZE", "XDG_RUNTIME_DIR"};
  options.deadline = std::chrono::minutes(4);
  background_process job(options);
  job.wait_for_line("\"event\":\"step\"");
  auto segments = segments_of(user);
  CHECK(segments.size() >= 4);
  for (const auto& segment : segments) CHECK((segment.permissions & 077) == 0);
  CHECK(job.wait().exit_code == 0);
}

TEST_CASE("processes that may not read each other's memory copy tensors, say so, and give the same bits",
          "[hostile_neighbours]") {
  if (::geteuid() != 0) SKIP("the job runs as a user of its own: run the test as root");
  temp_folder folder;
  ::chmod(folder.path().c_str(), 0711);
  // A user who may execute a program and not read it gets processes that are not dumpable.
  auto program = folder.path() / "program";
  std::filesystem::copy_file(FASHION_MNIST_PROGRAM, program);
  ::chmod(program.c_str(), 0711);
  run_options options;
  options.command = join({"setpriv", "--reuid", "64335", "--regid", "64335", "--clear-groups", TROUPE_PROGRAM,
                          "launch", "--nproc-per-node", "4", "--", program.string(), "--json"},
                         small_job());
  options.without = {"RANK", "WORLD_SIZE", "XDG_RUNTIME_DIR"};
  options.deadline = std::chrono::minutes(4);
  auto result = run_process(options);
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 0);
  CHECK(result.output.find(undisturbed_weights()) != std::string::npos);
  CHECK(result.errors.find("other processes may not read this one's memory") != std::string::npos);
}

TEST_CASE("a flood of connections and one kill do not end a job", "[hostile_neighbours]") {
  joined_namespaces network;
  temp_folder folder;
  run_options options;
  options.command = join(join({"ip", "netns", "exec", network.name(0), TROUPE_PROGRAM, "launch", "--json",
                               "--nproc-per-node", "4", "--", FASHION_MNIST_PROGRAM, "--json"},
                              small_job()),
                         {"--snapshot-every", "2", "--snapshot-dir", (folder.path() / "snapshots").string(),
                          "--fault", "forward@rank=2,step=7"});
  options.without = {"RANK", "WORLD_SIZE"};
  options.deadline = std::chrono::minutes(4);
  auto wanted = undisturbed_weights();
  port_flood flood(network.name(0));
  auto result = run_process(options);
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 0);
  CHECK(result.output.find(wanted) != std::string::npos);
  CHECK(result.output.find("\"event\":\"recovered\"") != std::string::npos);
  CHECK(flood.num_connections() > 0);
}
