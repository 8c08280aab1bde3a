#include <fcntl.h>
#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <fstream>
#include <sstream>

#include "launch_command_line.hpp"
#include "launcher.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/messaging/tcp_socket.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

/// The process id in the line of `rank` for the view of `generation`; empty if there is none.
std::string pid_in(const std::string& output, int rank, int generation) {
  std::istringstream lines(output);
  auto start = "[" + std::to_string(rank).append("] view ") + std::to_string(generation) + " ";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(start)) return line.substr(line.rfind(' ') + 1);
  return "";
}

}  // namespace

TEST_CASE("a job whose processes all end with 0 ends with 0") {
  auto result = run_process(launch({"--nproc-per-node", "3"}, {"1"}));
  CHECK(result.exit_code == 0);
  CHECK(result.errors.empty());
  for (int rank = 0; rank < 3; ++rank) CHECK_FALSE(pid_in(result.output, rank, 1).empty());
}

TEST_CASE("without restarts the first failure ends the job with its exit code and is named") {
  auto result = run_process(launch({"--nproc-per-node", "3", "--max-restarts", "0"}, {"0", "1.0=exit-3"}));
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1 failed first: exit code 3"));
}

TEST_CASE("a killed process is started again while the others keep their processes") {
  auto result = run_process(launch({"--nproc-per-node", "3"}, {"2", "1.0=kill"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 0);
  CHECK(pid_in(result.output, 0, 1) == pid_in(result.output, 0, 2));
  CHECK(pid_in(result.output, 2, 1) == pid_in(result.output, 2, 2));
  CHECK(pid_in(result.output, 1, 1) != pid_in(result.output, 1, 2));
  CHECK_THAT(result.output, ContainsSubstring("[1] view 2 of 3 members, incarnation 1"));
  CHECK_THAT(result.errors, ContainsSubstring("troupe: rank 1 was killed by SIGKILL at step ") &&
                                ContainsSubstring("2 other processes kept running"));
}

TEST_CASE("rank 0 may end with any signal or exit code and is started again") {
  auto result = run_process(launch({"--nproc-per-node", "2"}, {"3", "0.0=exit-7", "0.1=kill"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 0);
  CHECK(pid_in(result.output, 1, 1) == pid_in(result.output, 1, 3));
  CHECK_THAT(result.errors, ContainsSubstring("rank 0 ended with exit code 7 at step "));
}

TEST_CASE("a process that dies before it joins is started again") {
  auto result = run_process(launch({"--nproc-per-node", "2"}, {"2", "1.0=kill-early"}));
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.output, ContainsSubstring("[1] view 2 of 2 members, incarnation 1"));
}

TEST_CASE("a process that ends repeatedly uses up the restarts") {
  auto result = run_process(launch({"--nproc-per-node", "2", "--max-restarts", "2"},
                                   {"0", "1.0=kill", "1.1=kill-early", "1.2=kill"}));
  CHECK(result.exit_code == 128 + 9);
  CHECK_THAT(result.errors,
             ContainsSubstring("rank 1 failed first: killed by SIGKILL, and no restarts are left"));
}

TEST_CASE("a process that ends with bad input is not started again") {
  auto result = run_process(launch({"--nproc-per-node", "2"}, {"0", "1.0=exit-2"}));
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1 failed first: exit code 2"));
  CHECK_THAT(result.output, !ContainsSubstring("incarnation 1"));
}

TEST_CASE("a refused job ends with 2, also if its processes are ended before they come to their exit codes") {
  auto result = run_process(
      launch({"--nproc-per-node", "2"}, {"0", "0.0=refuse-no such file", "1.0=refuse-no such file"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("ended the job: no such file"));
}

TEST_CASE("a worker that never joins ends the job, and is named") {
  auto result = run_process(launch({"--nproc-per-node", "3", "--join-timeout", "3"}, {"1", "1.0=no-join"}));
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.errors,
             ContainsSubstring("rank 1 of 3 did not join") && ContainsSubstring("--join-timeout"));
}

TEST_CASE("processes that come after the time to join end as the job does, whatever they notice first") {
  // The second connects when the job has ended.
  auto result = run_process(
      launch({"--nproc-per-node", "2", "--join-timeout", "2500ms"}, {"1", "0.0=no-join", "1.0=late"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.errors, ContainsSubstring("ranks 0, 1 of 2 did not join the job within 2.5 s"));
}

TEST_CASE("a process that stops is killed as a suspect and started again") {
  auto result = run_process(launch({"--nproc-per-node", "2", "--suspect-after", "2"}, {"2", "1.0=stop"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1 (pid ") && ContainsSubstring("no heartbeat for") &&
                                ContainsSubstring("rank 1 was killed by SIGKILL (no heartbeat"));
}

TEST_CASE("a process that crashes after it left is not started again, and the job fails") {
  auto result = run_process(launch({"--nproc-per-node", "2"}, {"1", "1.0=crash-after-leave"}));
  CHECK(result.exit_code == 128 + 9);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1 was killed by SIGKILL after it had left the job"));
}

TEST_CASE("a process killed when the job is over is not started again, but its exit code counts") {
  auto killed = run_process(launch({"--nproc-per-node", "2"}, {"1", "1.0=over-kill"}));
  CAPTURE(killed.errors);
  CHECK(killed.exit_code == 0);
  CHECK_THAT(killed.errors,
             ContainsSubstring("rank 1 was killed by SIGKILL when the job was done, and is not restarted"));
  auto failed = run_process(launch({"--nproc-per-node", "2"}, {"1", "1.0=over-exit-7"}));
  CAPTURE(failed.errors);
  CHECK(failed.exit_code == 7);
  CHECK_THAT(failed.errors, ContainsSubstring("rank 1") && ContainsSubstring("when the job was done"));
}

TEST_CASE("the exit code of a process that was restarted too late to join does not count") {
  auto result =
      run_process(launch({"--nproc-per-node", "2"}, {"1", "0.0=leave-at-fence", "1.0=kill", "1.1=late"}));
  CAPTURE(result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1 was killed by SIGKILL"));
  CHECK_THAT(result.errors, ContainsSubstring("the job was done before it had joined again"));
}

TEST_CASE("a drill kills its rank at its step, and one whose step never came is reported") {
  auto result = run_process(launch({"--nproc-per-node", "2", "--drill", "1@5", "--drill", "0@900"}, {"2"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("drill: killing rank 1 (pid ") &&
                                ContainsSubstring(") with SIGKILL at step ") &&
                                ContainsSubstring("rank 1 was killed by SIGKILL at step") &&
                                ContainsSubstring("the drill 0@900 was not run"));
}

TEST_CASE("a program that cannot be launched is refused with code 2 and an error") {
  auto errors_of = [](std::vector<std::string> words) {
    words.insert(words.begin(), {TROUPE_PROGRAM, "launch"});
    auto result = run_process({.command = words, .environment = {}, .without = {}});
    CHECK(result.exit_code == 2);
    CHECK(result.output.empty());
    return result.errors;
  };
  CHECK_THAT(errors_of({"no-such-program"}),
             ContainsSubstring("'no-such-program'") && ContainsSubstring("PATH"));
  CHECK_THAT(errors_of({"./no-such-file"}), ContainsSubstring("there is no such file"));
  CHECK_THAT(errors_of({"--", "/proc/version"}), ContainsSubstring("not an executable"));
  CHECK_THAT(errors_of({}), ContainsSubstring("no program to launch"));
  CHECK_THAT(errors_of({"--no-such-option", "true"}), ContainsSubstring("--no-such-option"));
  CHECK_THAT(errors_of({"--nproc-per-node", "0", "true"}), ContainsSubstring("--nproc-per-node is 0"));
  CHECK_THAT(errors_of({"--drill", "1@2", "true"}), ContainsSubstring("rank 1"));
  CHECK_THAT(errors_of({"--drill", "two@2", "true"}), ContainsSubstring("RANK@STEP"));
  CHECK_THAT(errors_of({"--drill", "0@0", "true"}),
             ContainsSubstring("--drill 0@0") && ContainsSubstring("at least 1, got 0"));
  CHECK_THAT(errors_of({"--suspect-after", "3ms", "true"}),
             ContainsSubstring("--suspect-after: expected at least 200ms, got 3ms"));
  CHECK_THAT(errors_of({"--log-dir", "/proc/nothing", "true"}), ContainsSubstring("/proc/nothing"));
  CHECK_THAT(errors_of({"--log-dir", "", "true"}), ContainsSubstring("--log-dir: expected a folder"));
  CHECK_THAT(errors_of({"--stop-signals", "TERM", "true"}),
             ContainsSubstring("--stop-signals: expected USR1, USR2 or XCPU"));
  auto taken = messaging::listen_on("127.0.0.1", 0);
  auto port = std::to_string(messaging::local_port(taken));
  CHECK_THAT(errors_of({"--master-port", port, "true"}), ContainsSubstring("127.0.0.1:" + port));
}

TEST_CASE("options of torchrun and mpirun are refused with what to give instead") {
  auto errors_of = [](std::vector<std::string> words) {
    words.insert(words.begin(), {TROUPE_PROGRAM, "launch"});
    auto result = run_process({.command = words, .environment = {}, .without = {}});
    CHECK(result.exit_code == 2);
    return result.errors;
  };
  for (const char* number : {"-n", "-np"})
    CHECK_THAT(errors_of({number, "4", "true"}),
               ContainsSubstring("The number of processes is --nproc-per-node N"));
  CHECK_THAT(errors_of({"--nproc_per_node=4", "true"}), ContainsSubstring("--nproc-per-node N"));
  CHECK_THAT(errors_of({"--standalone", "true"}), ContainsSubstring("Leave it out"));
  for (const char* hosts : {"--nnodes=2", "--node_rank", "--rdzv-backend=c10d", "--hostfile"})
    CHECK_THAT(errors_of({hosts, "true"}), ContainsSubstring("on its own host only"));
  for (const char* word : {"auto", "gpu", "cpu"})
    CHECK_THAT(errors_of({"--nproc-per-node", word, "true"}),
               ContainsSubstring("--nproc-per-node") && ContainsSubstring("got '" + std::string(word)) &&
                   ContainsSubstring("troupe doctor"));
}

TEST_CASE("a mistyped command or option is refused with a suggestion, and --version prints the version") {
  auto outcome = [](std::vector<std::string> words) {
    words.insert(words.begin(), TROUPE_PROGRAM);
    return run_process({.command = words, .environment = {}, .without = {}});
  };
  auto errors_of = [&](const std::vector<std::string>& words) {
    auto result = outcome(words);
    CHECK(result.exit_code == 2);
    CHECK(result.output.empty());
    return result.errors;
  };
  CHECK_THAT(errors_of({"frobnicate"}), ContainsSubstring("there is no command 'frobnicate'") &&
                                            ContainsSubstring("launch") && ContainsSubstring("--help"));
  CHECK_THAT(errors_of({"lanch"}), ContainsSubstring("did you mean 'launch'?"));
  CHECK_THAT(errors_of({"--nope"}), ContainsSubstring("there is no option '--nope'"));
  CHECK_THAT(errors_of({"launch", "--jsn", "true"}), ContainsSubstring("did you mean '--json'?"));
  CHECK_THAT(errors_of({"doctor", "--jsn"}), ContainsSubstring("did you mean '--json'?"));
  CHECK_THAT(errors_of({}), ContainsSubstring("expected a command, got none. Commands: launch, "));
  CHECK_THAT(errors_of({"snapshot"}), ContainsSubstring("expected a command, got none. Commands: list, "));
  auto version = outcome({"--version"});
  CHECK(version.exit_code == 0);
  CHECK_THAT(version.output, StartsWith("troupe 0.") && ContainsSubstring("(commit "));
}

TEST_CASE("a value that an option does not take is refused with what it takes") {
  auto errors_of = [](std::vector<std::string> words) {
    words.insert(words.begin(), TROUPE_PROGRAM);
    auto result = run_process({.command = words, .environment = {}, .without = {}});
    CHECK(result.exit_code == 2);
    CHECK(result.output.empty());
    return result.errors;
  };
  // Also where words of the program stand behind it.
  CHECK_THAT(
      errors_of({"launch", "--nproc-per-node", "x", "--", "true"}),
      StartsWith("troupe: --nproc-per-node: expected a whole number, got 'x'. See `troupe launch --help`"));
  CHECK_THAT(errors_of({"launch", "--master-port", "99999", "true"}),
             ContainsSubstring("--master-port: expected a whole number from 0 to 65535, got '99999'"));
  CHECK_THAT(errors_of({"schedule", "--stages", "x"}),
             ContainsSubstring("--stages: expected a whole number, got 'x'"));
  CHECK_THAT(errors_of({"schedule", "--cost-f", "one"}),
             ContainsSubstring("--cost-f: expected a number, got 'one'"));
  CHECK_THAT(errors_of({"schedule", "--memory-per-chunk", "1Q"}),
             ContainsSubstring(
                 "--memory-per-chunk: expected a number of bytes, such as 64M or 2G, got the unit 'Q'"));
}

TEST_CASE("a program's own options are passed through") {
  for (bool dashes : {false, true}) {
    std::vector<std::string> command = {TROUPE_PROGRAM, "launch", "--", "echo",
                                        "--json",       "-x",     "--", "--nproc-per-node"};
    if (!dashes) command.erase(command.begin() + 2);
    auto result = run_process({.command = command, .environment = {}, .without = {}});
    CHECK(result.exit_code == 0);
    CHECK(result.output == "[0] --json -x -- --nproc-per-node\n");
  }
}

TEST_CASE("the failure of a process is in the last line, and its restarts are limited") {
  auto result =
      run_process(launch({"--nproc-per-node", "4"}, {"0", "1.0=fail-no such file", "1.1=fail-no such file",
                                                     "1.2=fail-no such file", "1.3=fail-no such file"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 1);
  // The steps that rank 0 reports may come after the first failure, which is then not the same as the next.
  CHECK_THAT(result.output, ContainsSubstring("incarnation 2") && !ContainsSubstring("incarnation 4"));
  CHECK_THAT(result.errors,
             EndsWith("troupe: rank 1 failed first: exit code 1: no such file, and it failed in the "
                      "same way 3 times without a step done in between, so starting it again "
                      "would not cure it\n"));
}

TEST_CASE("a segmentation fault is named") {
  auto result =
      run_process({.command = {TROUPE_PROGRAM, "launch", "--max-restarts", "0", "sh", "-c", "kill -SEGV $$"},
                   .environment = {},
                   .without = {}});
  CHECK(result.exit_code == 128 + 11);
  CHECK_THAT(result.errors, ContainsSubstring("rank 0 failed first: ended by SIGSEGV (segmentation fault)"));
}

TEST_CASE("a suspect that cannot be killed ends the job within a limit, and is left behind") {
  launch_options options;
  options.command = {LAUNCH_WORKER, "0", "1.0=stop"};
  options.num_processes = 2;
  options.suspect_after = std::chrono::seconds(1);
  options.time_to_die = std::chrono::milliseconds(300);
  temp_folder folder;
  auto errors = folder.path() / "errors";
  posix::unique_fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  posix::unique_fd said(::open(errors.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  options.output_fd = nowhere.get();
  options.error_fd = said.get();
  pid_t undead = 0;
  launch_callbacks callbacks;
  callbacks.on_started = [&](int rank, std::uint32_t, pid_t pid) {
    if (rank == 1) undead = pid;
  };
  options.send_signal = [&](pid_t to, int number) { return to == -undead ? 0 : ::kill(to, number); };
  CHECK(launcher(options, callbacks).run() == 1);
  CHECK(::kill(undead, 0) == 0);  // it is still there
  ::kill(undead, SIGKILL);
  ::waitpid(undead, nullptr, 0);
  std::ifstream stream(errors);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  CHECK_THAT(text, ContainsSubstring("rank 1 (pid " + std::to_string(undead) +
                                     ") was killed and has not ended within 300ms"));
}

TEST_CASE("a malformed duration is refused") {
  for (auto* option : {"--join-timeout", "--suspect-after", "--grace", "--restart-window"})
    for (auto* bad : {"nan", "inf", "-1", "0", "soon"}) {
      CAPTURE(option, bad);
      auto result = run_process(
          {.command = {TROUPE_PROGRAM, "launch", option, bad, "true"}, .environment = {}, .without = {}});
      CHECK(result.exit_code == 2);
      CHECK_THAT(result.errors, ContainsSubstring(option));
    }
}

TEST_CASE("drills are read strictly") {
  CHECK(parse_drill("2@117").rank == 2);
  CHECK(parse_drill("2@117").step == 117);
  for (auto* bad : {"", "2", "2@", "@3", "-1@3", "2@3x", "2@-3", "a@3"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_drill(bad), bad_input);
  }
}

TEST_CASE("the launcher class reports starts, progress and recoveries") {
  launch_options options;
  options.command = {LAUNCH_WORKER, "2"};
  options.num_processes = 2;
  options.drills = {{1, 3}};
  posix::unique_fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  options.output_fd = options.error_fd = nowhere.get();
  std::vector<std::string> started;
  std::vector<cluster::recovery_report> reports;
  std::uint64_t newest_step = 0;
  launch_callbacks callbacks;
  callbacks.on_started = [&](int rank, std::uint32_t incarnation, pid_t) {
    started.push_back(std::to_string(rank) + "." + std::to_string(incarnation));
  };
  callbacks.on_progress = [&](const cluster::job_progress& progress) {
    newest_step = std::max(newest_step, progress.step);
  };
  callbacks.on_recovered = [&](const cluster::recovery_report& report) { reports.push_back(report); };
  CHECK(launcher(options, callbacks).run() == 0);
  CHECK(started == std::vector<std::string>{"0.0", "1.0", "1.1"});
  CHECK(newest_step == 10);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].loss == cluster::member_loss{1, "killed by SIGKILL"});
  CHECK(reports[0].total_s > 0);
}
