#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "launch_command_line.hpp"
#include "troupe/messaging/tcp_socket.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace {

pid_t pid_at_end_of(const std::string& line) { return std::stoi(line.substr(line.rfind(' ') + 1)); }

/// Waits until each of `ranks` has printed its first view; returns their process ids.
std::vector<pid_t> pids_of(background_process& launcher, int num_ranks) {
  std::vector<pid_t> pids;
  for (int i = 0; i < num_ranks; ++i) pids.push_back(pid_at_end_of(launcher.wait_for_line("view 1 of")));
  return pids;
}

std::vector<posix::unique_fd> watch(const std::vector<pid_t>& pids) {
  std::vector<posix::unique_fd> made;
  for (auto pid : pids) made.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return made;
}

/// Processes that were started with `variable` in their environment.
int num_processes_with(const std::string& variable) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stream(entry.path() / "environ", std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    found += text.find(variable + "=") != text.npos;
  }
  return found;
}

/// The letter of ps: T is stopped.
char state_of(pid_t pid) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/stat");
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  auto end = text.rfind(')');
  return end == text.npos ? '?' : text.at(end + 2);
}

void wait_for_state(pid_t pid, bool stopped) {
  for (int tries = 0; tries < 600 && (state_of(pid) == 'T') != stopped; ++tries)
    std::this_thread::sleep_for(100ms);
  REQUIRE((state_of(pid) == 'T') == stopped);
}

}  // namespace

TEST_CASE("no process outlives a launcher that is killed") {
  background_process launcher(launch({"--nproc-per-node", "3"}, {"0", "1.0=ignore"}));
  auto processes = watch(pids_of(launcher, 3));
  launcher.signal(SIGKILL);
  for (auto& process : processes) CHECK((!process || messaging::wait_for(process.get(), POLLIN, 60s)));
  CHECK(launcher.wait().signal == SIGKILL);
}

TEST_CASE("a killed launcher's guard also kills a child that never joined") {
  background_process launcher(launch({}, {"0", "0.0=no-join"}));
  auto processes = watch({pid_at_end_of(launcher.wait_for_line("not joining"))});
  launcher.signal(SIGKILL);
  CHECK((!processes[0] || messaging::wait_for(processes[0].get(), POLLIN, 60s)));
}

TEST_CASE("SIGTERM, SIGINT and SIGHUP stop the job, which reports what it saved, and set the exit code") {
  for (int number : {SIGTERM, SIGINT, SIGHUP}) {
    background_process launcher(launch({"--nproc-per-node", "4"}, {"0"}));
    pids_of(launcher, 4);
    launcher.signal(number);
    auto result = launcher.wait();
    CAPTURE(number, result.output, result.errors);
    CHECK(result.exit_code == 128 + number);
    CHECK_THAT(result.output, !ContainsSubstring("incarnation 1"));
    for (int rank = 0; rank < 4; ++rank)
      CHECK_THAT(result.output, ContainsSubstring("[" + std::to_string(rank) + "] the job was stopped"));
    CHECK_THAT(result.errors, EndsWith("at step 10, which is saved\n"));
  }
}

TEST_CASE("a job stops at the early warnings that it is told of, however often they come") {
  background_process launcher(launch({"--nproc-per-node", "2", "--stop-signals", "USR1,USR2"}, {"0"}));
  pids_of(launcher, 2);
  launcher.signal(SIGUSR2);
  launcher.wait_for_line("SIGUSR2: the job saves its state");
  launcher.signal(SIGUSR1);
  launcher.signal(SIGUSR2);
  auto result = launcher.wait();
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 128 + SIGUSR2);
  CHECK_THAT(result.errors,
             !ContainsSubstring("again") && EndsWith("stopped by SIGUSR2 at step 10, which is saved\n"));
}

TEST_CASE(
    "a job that is started with SIGHUP and SIGINT ignored goes on when they come, and stops at SIGTERM") {
  background_process launcher(ignoring("HUP INT", launch({"--nproc-per-node", "2"}, {"0"})));
  auto pids = pids_of(launcher, 2);
  pids.push_back(launcher.pid());
  for (auto pid : pids)
    for (int number : {SIGHUP, SIGINT}) ::kill(pid, number);
  launcher.signal(SIGTERM);
  auto result = launcher.wait();
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.output, !ContainsSubstring("incarnation 1"));
  CHECK_THAT(result.errors, !ContainsSubstring("SIGHUP") && !ContainsSubstring("SIGINT") &&
                                EndsWith("at step 10, which is saved\n"));
}

TEST_CASE("processes that are no members get the signal itself, and may end with code 0") {
  for (int number : {SIGTERM, SIGINT}) {
    background_process launcher(launch({"--nproc-per-node", "2"}, {"0", "0.0=catch", "1.0=catch"}));
    for (int i = 0; i < 2; ++i) launcher.wait_for_line("not joining");
    launcher.signal(number);
    auto result = launcher.wait();
    CAPTURE(result.errors);
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.output,
               ContainsSubstring("[0] caught the signal") && ContainsSubstring("[1] caught the signal"));
  }
}

TEST_CASE("processes that the signal kills are not started again, and set the exit code") {
  background_process launcher(launch({"--nproc-per-node", "2"}, {"0", "0.0=no-join", "1.0=no-join"}));
  for (int i = 0; i < 2; ++i) launcher.wait_for_line("not joining");
  launcher.signal(SIGTERM);
  auto result = launcher.wait();
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.output, !ContainsSubstring("incarnation 1"));
}

TEST_CASE("a second Ctrl-C kills processes that ignore the first") {
  background_process launcher(launch({"--nproc-per-node", "2"}, {"0", "0.0=ignore", "1.0=ignore"}));
  pids_of(launcher, 2);
  launcher.signal(SIGINT);
  launcher.wait_for_line("SIGINT: the job saves its state");
  std::this_thread::sleep_for(1s);  // less counts as the first request
  launcher.signal(SIGINT);
  auto result = launcher.wait();
  CHECK(result.exit_code == 128 + SIGINT);
  CHECK_THAT(result.errors, ContainsSubstring("killing all processes"));
}

TEST_CASE("a request to stop that comes as several signals at once, as of timeout(1), saves the state") {
  background_process launcher(launch({"--nproc-per-node", "2"}, {"0"}));
  pids_of(launcher, 2);
  for (int number : {SIGTERM, SIGHUP, SIGINT}) launcher.signal(number);
  auto result = launcher.wait();
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code > 128);
  CHECK_THAT(result.errors, !ContainsSubstring("killing") && EndsWith("at step 10, which is saved\n"));
}

TEST_CASE("requests to stop that come as the job ends do not kill the launcher") {
  for (int i = 0; i < 10; ++i) {
    run_options options;
    options.command = {TROUPE_PROGRAM,
                       "launch",
                       "--nproc-per-node",
                       "1",
                       "--",
                       "sh",
                       "-c",
                       "kill -TERM $PPID; kill -HUP $PPID; kill -INT $PPID"};
    auto result = run_process(options);
    CAPTURE(i, result.errors);
    CHECK(result.signal == 0);
    CHECK((result.exit_code == 0 || result.exit_code == 128 + SIGTERM));
  }
}

TEST_CASE("a job that does not stop within the grace period is killed") {
  background_process launcher(
      launch({"--nproc-per-node", "2", "--grace", "200ms"}, {"0", "0.0=ignore", "1.0=ignore"}));
  pids_of(launcher, 2);
  launcher.signal(SIGTERM);
  auto result = launcher.wait();
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.errors, ContainsSubstring("did not stop within 200ms (--grace)"));
}

TEST_CASE("a member lost during a stop is started again, since others need it to save") {
  background_process launcher(launch({"--nproc-per-node", "2"}, {"0", "0.0=deaf", "1.0=ignore"}));
  auto pids = pids_of(launcher, 2);
  launcher.signal(SIGTERM);
  launcher.wait_for_line("is to stop by 15");
  for (auto pid : pids) ::kill(pid, SIGKILL);
  auto result = launcher.wait();
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.output, ContainsSubstring("incarnation 1"));
  CHECK_THAT(result.errors, EndsWith("at step 10, which is saved\n"));
}

TEST_CASE("a launcher killed at any moment leaves no process behind, not even grandchildren") {
  // The grandchildren have a session of their own.
  std::string script = "setsid sleep 1000 & sleep 1000 & wait";
  for (int moment = 0; moment < 12; ++moment) {
    auto mark = "TROUPE_TEST_MARK_" + std::to_string(::getpid()) + "_" + std::to_string(moment);
    run_options options{.command = {TROUPE_PROGRAM, "launch", "--nproc-per-node", "3", "sh", "-c", script},
                        .environment = {{mark, "1"}},
                        .without = {}};
    background_process launcher(options);
    std::this_thread::sleep_for(moment * 9ms);
    launcher.signal(SIGKILL);
    launcher.wait();
    for (int tries = 0; tries < 600 && num_processes_with(mark) > 0; ++tries)
      std::this_thread::sleep_for(100ms);
    CAPTURE(moment);
    CHECK(num_processes_with(mark) == 0);
  }
}

TEST_CASE("a failed job ends processes that ignore SIGTERM too") {
  background_process launcher(launch({"--nproc-per-node", "3", "--max-restarts", "0"},
                                     {"0", "0.0=ignore", "1.0=ignore", "2.0=exit-3"}));
  auto result = launcher.wait();
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.errors, ContainsSubstring("rank 2 failed first: exit code 3"));
}

TEST_CASE("processes stop and go on with the launcher, and none counts as lost") {
  for (int number : {SIGSTOP, SIGTSTP}) {
    // A background process group of a session without a terminal ignores SIGTSTP by default: the test asks
    // for the launcher alone to be stopped then.
    background_process launcher(launch({"--nproc-per-node", "2", "--suspect-after", "1s"}, {"0"}));
    auto pids = pids_of(launcher, 2);
    ::kill(launcher.pid(), number);
    if (number == SIGTSTP && state_of(launcher.pid()) != 'T') ::kill(launcher.pid(), SIGSTOP);
    for (auto pid : pids) wait_for_state(pid, true);
    std::this_thread::sleep_for(3s);
    ::kill(launcher.pid(), SIGCONT);
    for (auto pid : pids) wait_for_state(pid, false);
    launcher.signal(SIGTERM);
    auto result = launcher.wait();
    CAPTURE(number, result.output, result.errors);
    CHECK(result.exit_code == 128 + SIGTERM);
    CHECK_THAT(result.output, !ContainsSubstring("incarnation 1"));
    CHECK_THAT(result.errors, !ContainsSubstring("killed") && EndsWith("at step 10, which is saved\n"));
  }
}

TEST_CASE("the exit code of a failed job is the same where the launcher's parent ignores SIGCHLD") {
  auto options = launch({"--nproc-per-node", "2", "--max-restarts", "0"}, {"0", "1.0=exit-3"});
  options.command.insert(options.command.begin(), {LAUNCH_WORKER, "ignore-sigchld"});
  auto result = run_process(options);
  CAPTURE(result.errors);
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1 failed first: exit code 3"));
}

TEST_CASE("a job runs, and its losses are seen, where pidfd_open is refused") {
  auto options = launch({"--nproc-per-node", "2"}, {"2", "1.0=kill"});
  options.command.insert(options.command.begin(), {LAUNCH_WORKER, "refuse-pidfd"});
  auto result = run_process(options);
  CAPTURE(result.output, result.errors);
  if (result.exit_code == 77) SKIP("no seccomp filters here");
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1 was killed by SIGKILL"));
}

TEST_CASE("a process that was started again and does not join is killed and replaced") {
  auto result = run_process(
      launch({"--nproc-per-node", "2", "--join-timeout", "10s"}, {"3", "1.0=kill", "1.1=no-join"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors,
             ContainsSubstring("it replaces a lost process and did not join the job within 10.0 s"));
  CHECK_THAT(result.output, ContainsSubstring("incarnation 2"));
}

TEST_CASE("a program that leaves its processes behind before they join fails the job, and they are killed") {
  auto mark = "TROUPE_TEST_LEFT_" + std::to_string(::getpid());
  // setsid starts a process of its own if it leads a process group, and ends.
  run_options options{
      .command = {TROUPE_PROGRAM, "launch", "--nproc-per-node", "2", "--", "setsid", "sleep", "1000"},
      .environment = {{mark, "1"}},
      .without = {}};
  auto result = run_process(options);
  CAPTURE(result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("setsid --wait"));
  for (int tries = 0; tries < 600 && num_processes_with(mark) > 0; ++tries)
    std::this_thread::sleep_for(100ms);
  CHECK(num_processes_with(mark) == 0);
}
