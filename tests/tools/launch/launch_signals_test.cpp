#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>

#include "launch_command_line.hpp"
#include "troupe/cluster/tcp_socket.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

pid_t pid_at_end_of(const std::string& line) { return std::stoi(line.substr(line.rfind(' ') + 1)); }

/// Waits until each of `ranks` has printed its first view; returns their process ids.
std::vector<pid_t> pids_of(background_process& launcher, int num_ranks) {
  std::vector<pid_t> pids;
  for (int i = 0; i < num_ranks; ++i) pids.push_back(pid_at_end_of(launcher.wait_for_line("view 1 of")));
  return pids;
}

std::vector<unique_fd> watch(const std::vector<pid_t>& pids) {
  std::vector<unique_fd> made;
  for (auto pid : pids) made.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return made;
}

}  // namespace

TEST_CASE("no process outlives a launcher that is killed") {
  background_process launcher(launch({"--nproc-per-node", "3"}, {"0", "1.0=ignore"}));
  auto processes = watch(pids_of(launcher, 3));
  launcher.signal(SIGKILL);
  for (auto& process : processes) CHECK((!process || wait_for(process.get(), POLLIN, 60s)));
  CHECK(launcher.wait().signal == SIGKILL);
}

TEST_CASE("a killed launcher takes a child along that never joined") {
  background_process launcher(launch({}, {"0", "0.0=no-join"}));
  auto processes = watch({pid_at_end_of(launcher.wait_for_line("not joining"))});
  launcher.signal(SIGKILL);
  CHECK((!processes[0] || wait_for(processes[0].get(), POLLIN, 60s)));
}

TEST_CASE("SIGTERM and SIGINT reach the processes, which may end well") {
  for (int number : {SIGTERM, SIGINT}) {
    background_process launcher(launch({"--nproc-per-node", "2"}, {"0", "0.0=catch", "1.0=catch"}));
    pids_of(launcher, 2);
    launcher.signal(number);
    auto result = launcher.wait();
    CAPTURE(result.errors);
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.output,
               ContainsSubstring("[0] caught the signal") && ContainsSubstring("[1] caught the signal"));
  }
}

TEST_CASE("processes that the forwarded signal kills are not started again, and give the exit code") {
  background_process launcher(launch({"--nproc-per-node", "2"}, {"0"}));
  pids_of(launcher, 2);
  launcher.signal(SIGTERM);
  auto result = launcher.wait();
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.output, !ContainsSubstring("incarnation 1"));
  CHECK_THAT(result.errors, ContainsSubstring("SIGTERM goes to all processes"));
}

TEST_CASE("a second Ctrl-C kills processes that ignore the first") {
  background_process launcher(launch({"--nproc-per-node", "2"}, {"0", "0.0=ignore", "1.0=ignore"}));
  pids_of(launcher, 2);
  launcher.signal(SIGINT);
  launcher.wait_for_line("SIGINT goes to all processes");
  launcher.signal(SIGINT);
  auto result = launcher.wait();
  CHECK(result.exit_code == 128 + SIGKILL);
  CHECK_THAT(result.errors, ContainsSubstring("killing all processes"));
}

TEST_CASE("a failed job ends processes that ignore SIGTERM too") {
  background_process launcher(launch({"--nproc-per-node", "3", "--max-restarts", "0"},
                                     {"0", "0.0=ignore", "1.0=ignore", "2.0=exit-3"}));
  auto result = launcher.wait();
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.errors, ContainsSubstring("rank 2 failed first: exit code 3"));
}
