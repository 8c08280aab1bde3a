// The launcher where something that programs take for granted is missing: interpreters, /dev/null, threads,
// a parent that reaps.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "launch_command_line.hpp"
#include "support/processes/pids_group.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

using words = std::vector<std::string>;

process_result run(words command) {
  return run_process({.command = std::move(command), .environment = {}, .without = {}});
}

/// `line` in a shell within new namespaces. Skips the test where these cannot be made.
process_result run_apart(const words& namespaces, const std::string& line) {
  auto in_namespaces = [&](const std::string& of) {
    words command{"unshare"};
    command.insert(command.end(), namespaces.begin(), namespaces.end());
    command.insert(command.end(), {"sh", "-c", of});
    return run(command);
  };
  if (in_namespaces("true").exit_code != 0) SKIP("namespaces cannot be made here");
  return in_namespaces(line);
}

const std::string launch_one = std::string(TROUPE_PROGRAM) + " launch --nproc-per-node 1 -- ";

}  // namespace

TEST_CASE("a program that is there and does not start is refused with what it misses") {
  temp_folder folder;
  auto errors_of = [&](const std::string& content) {
    auto file = folder.path() / "program";
    std::ofstream(file) << content;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    auto result = run({TROUPE_PROGRAM, "launch", file.string()});
    CHECK(result.exit_code == 2);
    return result.errors;
  };
  CHECK_THAT(errors_of("#!/no/such/interpreter -x\necho here\n"),
             ContainsSubstring("names the interpreter '/no/such/interpreter', which is not there"));
  CHECK_THAT(errors_of("#!/bin/sh\r\necho here\r\n"), ContainsSubstring("carriage return"));
  CHECK_THAT(errors_of("echo here\n"), ContainsSubstring("without a first line such as #!/bin/sh"));
}

TEST_CASE("a log folder within a working directory that was removed is refused with that reason") {
  temp_folder folder;
  auto result = run({"sh", "-c",
                     "cd " + folder.path().string() + " && mkdir here && cd here && rmdir ../here && exec " +
                         TROUPE_PROGRAM + " launch --log-dir logs -- true"});
  CAPTURE(result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("'logs'") && ContainsSubstring("was removed"));
}

TEST_CASE("without /dev/null a program is refused, and the message says that it is missing") {
  auto result = run_apart({"--mount"}, "mount -t tmpfs none /dev && " + launch_one + "true");
  CAPTURE(result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("cannot open /dev/null"));
}

TEST_CASE("the launcher as the first process of a container reaps the processes that it adopts") {
  // Waits until a process whose parent has ended is gone: one that nobody reaps stays as a zombie.
  std::string program =
      R"('(sh -c "echo \$\$ >$PIDS/pid; exit 0" &) ; while [ ! -s $PIDS/pid ]; do sleep 0.05; done; )"
      R"(while [ -e /proc/$(cat $PIDS/pid) ]; do sleep 0.05; done; echo reaped')";
  temp_folder folder;
  auto result =
      run_apart({"--pid", "--fork", "--mount-proc"},
                "export PIDS=" + folder.path().string() + "; exec " + launch_one + "sh -c " + program);
  CAPTURE(result.errors);
  CHECK(result.exit_code == 0);
  CHECK(result.output == "[0] reaped\n");
}

TEST_CASE("a process that is killed at its limit of processor time is explained") {
  auto result = run({"bash", "-c",
                     "ulimit -t 1; exec " + std::string(TROUPE_PROGRAM) +
                         " launch --max-restarts 0 -- sh -c 'while :; do :; done'"});
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGKILL);
  CHECK_THAT(result.errors, ContainsSubstring("its limit of processor time was used up, 1 s (ulimit -t)"));
}

TEST_CASE("a process that is stopped before it joins is named when the others have waited in vain") {
  auto options = launch({"--nproc-per-node", "2", "--join-timeout", "1s"}, {"0"});
  auto worker = std::ranges::find(options.command, LAUNCH_WORKER);
  options.command.insert(worker, {"sh", "-c", "[ $RANK = 0 ] || kill -STOP $$; exec \"$@\"", "sh"});
  auto result = run_process(options);
  CAPTURE(result.errors);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1 of 2 did not join") &&
                                ContainsSubstring("Rank 1 (pid ") &&
                                ContainsSubstring("is stopped (SIGSTOP"));
}

TEST_CASE("a start without descriptors for a program's input names their limit") {
  int num_refused = 0;
  for (int limit = 12; limit <= 48; ++limit) {
    auto result = run({"bash", "-c", "ulimit -n " + std::to_string(limit) + "; exec " + launch_one + "true"});
    CAPTURE(limit, result.errors);
    if (result.exit_code == 0) continue;
    ++num_refused;
    CHECK_THAT(result.errors, !ContainsSubstring("needs a /dev"));
  }
  if (num_refused == 0) SKIP("a launcher needs fewer descriptors here");
}

TEST_CASE("a launcher that is one of several says that each starts a job of its own") {
  auto result = run_process({.command = {TROUPE_PROGRAM, "launch", "--", "true"},
                             .environment = {{"RANK", "1"}, {"WORLD_SIZE", "2"}},
                             .without = {}});
  CAPTURE(result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("one of several processes (RANK=1, WORLD_SIZE=2)"));
}

TEST_CASE("where threads are refused the launcher names the limit") {
  // The limit does not bind the superuser.
  std::string as_other = ::geteuid() == 0 ? "exec setpriv --reuid 64999 --clear-groups " : "exec ";
  auto limited = [&](const std::string& command) {
    return run({"bash", "-c", "ulimit -u 1; " + as_other + command});
  };
  if (limited("test -x " + std::string(TROUPE_PROGRAM)).exit_code != 0)
    SKIP("another user cannot run programs of this folder, or there is no setpriv");
  auto result = limited(launch_one + "true");
  CAPTURE(result.errors);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.errors, ContainsSubstring("troupe launch needs") &&
                                ContainsSubstring("limit of processes and threads is 1 (ulimit -u)"));
}

TEST_CASE("where a control group refuses threads the launcher names it") {
  for (int limit : {1, 3}) {
    auto group = pids_group::make(limit);
    if (!group) SKIP("no control group for processes can be made here");
    auto result = run({"sh", "-c", group->within(launch_one + "true")});
    CAPTURE(limit, result.errors, result.signal);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.errors,
               ContainsSubstring("troupe launch needs") &&
                   ContainsSubstring("is " + std::to_string(limit) + " (" + group->file().string() + ")"));
  }
}

TEST_CASE("a launcher whose parent blocks SIGTERM stops on it") {
  auto options = launch({"--nproc-per-node", "2"}, {"0"});
  options.command.insert(options.command.begin(), {"env", "--block-signal=TERM"});
  background_process job(options);
  for (int i = 0; i < 2; ++i) job.wait_for_line("view 1 of");
  job.signal(SIGTERM);
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
}
