// Real jobs of four processes that are told to stop, or in which one process fails.
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "jobs/job.hpp"
#include "jobs/worker_job.hpp"
#include "support/processes/pids_group.hpp"
#include "support/temp_folder.hpp"
#include "support/text_of.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

/// A job that goes on until it is stopped.
words long_job() {
  return {"--json", "--epochs", "1000", "--batch", "64", "--microbatches", "4", "--stages", "4"};
}

run_options launched_job(const words& program_options, const words& launch_options = {}) {
  return {.command = join(join({TROUPE_PROGRAM, "launch", "--json", "--nproc-per-node", "4"}, launch_options),
                          join({"--", FASHION_MNIST_PROGRAM}, program_options)),
          .environment = {},
          .without = {"RANK", "WORLD_SIZE"},
          .deadline = std::chrono::minutes(4)};
}

/// The newest process that was started with these variables.
pid_t process_with(const words& variables) {
  pid_t newest = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    auto text = std::string(1, '\0') + text_of(entry.path() / "environ");
    bool has_all = std::ranges::all_of(variables, [&](const std::string& one) {
      return text.find(std::string(1, '\0') + one + std::string(1, '\0')) != text.npos;
    });
    if (has_all) newest = std::max(newest, std::stoi(name));
  }
  return newest;
}

/// The step that a stopped job says it saved.
int saved_step(const std::string& text) {
  auto end = text.find(", which is saved in ", text.find("stopped"));
  REQUIRE(end != text.npos);
  auto begin = text.rfind(" at step ", end) + std::string(" at step ").size();
  return std::stoi(text.substr(begin, end - begin));
}

std::string last_line_of(const std::string& text) {
  auto before = text.size() < 2 ? text.npos : text.rfind('\n', text.size() - 2);
  return before == text.npos ? text : text.substr(before + 1);
}

/// The saved state equals that of a job that was not stopped.
void check_resumes(const std::filesystem::path& folder, int step) {
  words small{"--batch", "64",      "--microbatches",        "4", "--epochs", "1000", "--stages",
              "4",       "--steps", std::to_string(step + 3)};
  auto resumed = run_local(join(small, {"--resume", "--snapshot-dir", folder.string()}));
  CHECK(resumed.named("step").size() == 3);
  CHECK(resumed.weights_sha256() == run_local(small).weights_sha256());
}

}  // namespace

TEST_CASE("SIGTERM to the launcher saves the last step and ends the job with 143", "[stop]") {
  temp_folder folder;
  background_process job(launched_job(join(long_job(), {"--snapshot-dir", folder.path().string()})));
  job.wait_for_line("\"event\":\"step\"");
  job.signal(SIGTERM);
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.errors, EndsWith(": --resume continues from there\n"));
  check_resumes(folder.path(), saved_step(result.errors));
}

TEST_CASE("a single program whose parent blocks SIGTERM stops on it", "[stop]") {
  background_process job({.command = join({"env", "--block-signal=TERM", FASHION_MNIST_PROGRAM}, long_job()),
                          .environment = {},
                          .without = {"RANK", "WORLD_SIZE"}});
  job.wait_for_line("\"event\":\"step\"");
  job.signal(SIGTERM);
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
}

TEST_CASE("a program to which threads are refused says which limit does, and ends", "[stop]") {
  std::string as_other = ::geteuid() == 0 ? "exec setpriv --reuid 64998 --clear-groups " : "exec ";
  for (const char* limit : {"1", "2", "4", "8"}) {
    auto limited = [&](const std::string& command) {
      return run_process(
          {.command = {"bash", "-c", "ulimit -u " + std::string(limit) + "; " + as_other + command},
           .environment = {{"TMPDIR", "/tmp"}},
           .without = {"RANK", "WORLD_SIZE"}});
    };
    if (limited("test -x " + std::string(FASHION_MNIST_PROGRAM)).exit_code != 0)
      SKIP("another user cannot run programs of this folder, or there is no setpriv");
    auto result = limited(std::string(FASHION_MNIST_PROGRAM) + " --steps 2");
    CAPTURE(limit, result.errors, result.signal);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.errors, ContainsSubstring("this process needs") &&
                                  ContainsSubstring("is " + std::string(limit) + " (ulimit -u)"));
  }
}

TEST_CASE("a program to which a control group refuses threads says which does, and ends", "[stop]") {
  for (int limit : {1, 4, 8}) {
    auto group = pids_group::make(limit);
    if (!group) SKIP("no control group for processes can be made here");
    auto line = group->within(std::string(FASHION_MNIST_PROGRAM) + " --steps 2");
    auto result =
        run_process({.command = {"sh", "-c", line}, .environment = {}, .without = {"RANK", "WORLD_SIZE"}});
    CAPTURE(limit, result.errors, result.signal);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.errors,
               ContainsSubstring("this process needs") &&
                   ContainsSubstring("is " + std::to_string(limit) + " (" + group->file().string() + ")"));
  }
}

TEST_CASE("a program in a small address space runs, or says which limit has no room for its threads",
          "[stop]") {
  auto limited = [](const std::string& kib, const std::string& options) {
    return run_process(
        {.command = {"bash", "-c", "ulimit -v " + kib + "; exec " + FASHION_MNIST_PROGRAM + " " + options},
         .environment = {},
         .without = {"RANK", "WORLD_SIZE"}});
  };
  const std::string small = "250000", enough = "700000";
  if (limited(small, "--version").exit_code != 0) SKIP("this build needs more to start at all");
  auto refused = limited(small, "--steps 2");
  CAPTURE(refused.errors, refused.signal);
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.errors, ContainsSubstring("limited to 250000 KiB (ulimit -v)"));
  auto ran = limited(enough, "--steps 2 --devices 2 --stages 2");
  CAPTURE(ran.errors, ran.signal);
  CHECK(ran.exit_code == 0);
}

TEST_CASE("SIGINT to a job without a snapshot folder ends it with 130, and the message says what is lost",
          "[stop]") {
  background_process job(launched_job(long_job()));
  job.wait_for_line("\"event\":\"step\"");
  job.signal(SIGINT);
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGINT);
  CHECK_THAT(result.errors,
             EndsWith("There is no snapshot folder, so its work is lost: --snapshot-dir FOLDER "
                      "keeps it\n"));
}

TEST_CASE("SIGTERM to all members, but not to the launcher, does the same as to the launcher", "[stop]") {
  temp_folder folder;
  auto mark = "TROUPE_TEST_OF=" + folder.path().string();
  auto options = launched_job(join(long_job(), {"--snapshot-dir", folder.path().string()}));
  options.environment = {{"TROUPE_TEST_OF", folder.path().string()}};
  background_process job(options);
  job.wait_for_line("\"event\":\"step\"");
  for (int rank = 0; rank < 4; ++rank) ::kill(process_with({mark, "RANK=" + std::to_string(rank)}), SIGTERM);
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK(saved_step(result.errors) > 0);
}

TEST_CASE("SIGTERM to one worker ends that worker, which is started again", "[stop]") {
  temp_folder folder;
  auto options = launched_job(join(long_job(), {"--snapshot-dir", folder.path().string()}));
  options.environment = {{"TROUPE_TEST_OF", folder.path().string()}};
  background_process job(options);
  job.wait_for_line("\"event\":\"step\"");
  ::kill(process_with({"TROUPE_TEST_OF=" + folder.path().string(), "RANK=2"}), SIGTERM);
  CHECK_THAT(job.wait_for_line("\"event\":\"recovery\""), ContainsSubstring("SIGTERM"));
  job.signal(SIGTERM);
  auto result = job.wait();
  CHECK(result.exit_code == 128 + SIGTERM);
  check_resumes(folder.path(), saved_step(result.errors));
}

TEST_CASE("SIGTERM to all processes of a job without a launcher saves the last step too", "[stop]") {
  temp_folder folder, runtime;
  std::vector<std::unique_ptr<background_process>> job;
  auto port = port_of_this_process();
  for (int rank = 0; rank < 4; ++rank) {
    run_options options{
        .command = join({FASHION_MNIST_PROGRAM},
                        join(long_job(), {"--snapshot-dir", (folder.path() / "snapshots").string()})),
        .environment = {{"RANK", std::to_string(rank)},
                        {"WORLD_SIZE", "4"},
                        {"MASTER_PORT", port},
                        {"XDG_RUNTIME_DIR", runtime.path().string()}},
        .without = {}};
    options.deadline = std::chrono::minutes(4);
    job.push_back(std::make_unique<background_process>(options));
  }
  job[0]->wait_for_line("\"event\":\"step\"");
  for (auto& process : job) process->signal(SIGTERM);
  for (auto& process : job) {
    auto result = process->wait();
    CAPTURE(result.errors);
    CHECK(result.exit_code == 128 + SIGTERM);
    CHECK(saved_step(result.errors) > 0);
  }
}

TEST_CASE("SIGTERM to a process that waits for the others of a job without a launcher ends it with 143",
          "[stop]") {
  temp_folder runtime;
  background_process waiting({.command = {FASHION_MNIST_PROGRAM, "--stages", "1"},
                              .environment = {{"RANK", "0"},
                                              {"WORLD_SIZE", "2"},
                                              {"MASTER_PORT", port_of_this_process()},
                                              {"XDG_RUNTIME_DIR", runtime.path().string()}},
                              .without = {}});
  waiting.wait_for_line("devices without a stage");  // a warning of its Trainer, which then waits
  waiting.signal(SIGTERM);
  auto result = waiting.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.errors, EndsWith(": stopped before it began\n"));
}

TEST_CASE("SIGTERM to one worker while another has not joined ends that worker, which is started again",
          "[stop]") {
  temp_folder folder;
  auto path = folder.path().string();
  words program{"sh", "-c", "[ $RANK = 0 ] || until [ -e \"$0/go\" ]; do sleep 0.05; done; exec \"$@\"", path,
                FASHION_MNIST_PROGRAM};
  run_options options{
      .command = join(join({TROUPE_PROGRAM, "launch", "--nproc-per-node", "2", "--"}, program),
                      {"--json", "--stages", "1", "--steps", "3"}),
      .environment = {{"TROUPE_TEST_OF", path}},
      .without = {"RANK", "WORLD_SIZE"}};
  background_process job(options);
  job.wait_for_line("devices without a stage");
  words first{"TROUPE_TEST_OF=" + path, "RANK=0", "TROUPE_INCARNATION=0"};
  words second{"TROUPE_TEST_OF=" + path, "RANK=0", "TROUPE_INCARNATION=1"};
  ::kill(process_with(first), SIGTERM);
  while (process_with(first) != 0 || process_with(second) == 0) std::this_thread::yield();
  std::ofstream(folder.path() / "go").flush();
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("SIGTERM came to this process alone"));
  CHECK_THAT(result.output, ContainsSubstring("\"event\":\"done\""));
}

TEST_CASE("a process alone saves its last step at SIGTERM, also as one of several signals at once",
          "[stop]") {
  for (const auto& signals : {std::vector{SIGTERM}, {SIGTERM, SIGHUP, SIGINT}}) {
    temp_folder folder;
    background_process job({.command = join({FASHION_MNIST_PROGRAM},
                                            join(long_job(), {"--snapshot-dir", folder.path().string()})),
                            .environment = {},
                            .without = {"RANK", "WORLD_SIZE"}});
    job.wait_for_line("\"event\":\"step\"");
    for (int number : signals) job.signal(number);
    auto result = job.wait();
    CAPTURE(signals, result.errors);
    if (signals.size() == 1)
      CHECK(result.exit_code == 128 + SIGTERM);
    else
      CHECK(result.exit_code > 128);  // pending signals come in any order
    CHECK_THAT(result.errors, !ContainsSubstring("came again"));
    check_resumes(folder.path(), saved_step(result.errors));
  }
}

TEST_CASE("a process alone saves its last step at an early warning that it is told of", "[stop]") {
  temp_folder folder;
  background_process job(
      {.command = join({FASHION_MNIST_PROGRAM}, join(long_job(), {"--stop-signals", "USR1", "--snapshot-dir",
                                                                  folder.path().string()})),
       .environment = {},
       .without = {"RANK", "WORLD_SIZE"}});
  job.wait_for_line("\"event\":\"step\"");
  job.signal(SIGUSR1);
  job.signal(SIGUSR1);  // not a second signal that kills
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGUSR1);
  check_resumes(folder.path(), saved_step(result.errors));
}

TEST_CASE("an early warning to the launcher and to all members, as a scheduler sends it, stops the job once",
          "[stop]") {
  temp_folder folder;
  auto options =
      launched_job(join(long_job(), {"--snapshot-dir", folder.path().string()}), {"--stop-signals", "USR2"});
  options.environment = {{"TROUPE_TEST_OF", folder.path().string()}};
  background_process job(options);
  job.wait_for_line("\"event\":\"step\"");
  auto mark = "TROUPE_TEST_OF=" + folder.path().string();
  for (int rank = 0; rank < 4; ++rank) ::kill(process_with({mark, "RANK=" + std::to_string(rank)}), SIGUSR2);
  job.signal(SIGUSR2);
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGUSR2);
  check_resumes(folder.path(), saved_step(result.errors));
}

TEST_CASE("a process alone that is started with SIGHUP ignored trains on when it comes", "[stop]") {
  background_process job(
      {.command = join({"sh", "-c", R"(trap '' HUP; exec "$@")", "sh", FASHION_MNIST_PROGRAM}, long_job()),
       .environment = {},
       .without = {"RANK", "WORLD_SIZE", "UCX_DEBUG_SIGNO"}});
  job.wait_for_line("\"event\":\"step\"");
  job.signal(SIGHUP);
  job.signal(SIGTERM);
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.errors, !ContainsSubstring("SIGHUP"));
}

TEST_CASE("an exception of one rank is printed, ends the job after three attempts, and is in the last line",
          "[stop]") {
  auto result = run_process(
      {.command = {TROUPE_PROGRAM, "launch", "--nproc-per-node", "4", FAILING_WORKER, "2", "throw"},
       .environment = {},
       .without = {}});
  CAPTURE(result.errors);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.errors, ContainsSubstring(std::string("[2] ") + FAILING_WORKER + ": the disk said no\n"));
  CHECK_THAT(result.errors,
             ContainsSubstring("troupe: rank 2 failed first: exit code 1: the disk said no, and it "
                               "failed in the same way 3 times"));
  CHECK_THAT(last_line_of(result.errors), StartsWith("troupe: rank 2 failed first"));
  CHECK_THAT(result.errors,
             !ContainsSubstring("[0]") && !ContainsSubstring("[1]") && !ContainsSubstring("[3]"));
}

TEST_CASE("how a rank ended is the job's exit code and is named", "[stop]") {
  auto ended = [](const std::string& how, const words& options = {}) {
    auto result =
        run_process({.command = join(join({TROUPE_PROGRAM, "launch", "--nproc-per-node", "4"}, options),
                                     {FAILING_WORKER, "1", how}),
                     // The address sanitizer would make an exit code of a signal.
                     .environment = {{"ASAN_OPTIONS", "handle_segv=0"}},
                     .without = {}});
    CAPTURE(how, result.errors);
    CHECK_THAT(last_line_of(result.errors), StartsWith("troupe: rank 1 failed first"));
    return result;
  };
  CHECK(ended("exit", {"--max-restarts", "0"}).exit_code == 7);
  auto bad = ended("bad-input");
  CHECK(bad.exit_code == 2);
  CHECK_THAT(bad.errors, ContainsSubstring("exit code 2: there is no file of that name"));
  auto crashed = ended("segfault");
  CHECK(crashed.exit_code == 128 + SIGSEGV);
  CHECK_THAT(crashed.errors, ContainsSubstring("rank 1 failed first: ended by SIGSEGV (segmentation fault)"));
}

TEST_CASE("stacks that are too small are refused with their limit", "[stop]") {
  if (run_process({.command = {"bash", "-c", "ulimit -s 64; exec " FASHION_MNIST_PROGRAM " --version"},
                   .environment = {},
                   .without = {}})
          .exit_code != 0)
    SKIP("this build needs larger ones to start at all");
  for (const auto* command :
       {FASHION_MNIST_PROGRAM " --steps 1", TROUPE_PROGRAM " launch --nproc-per-node 1 -- true"}) {
    auto result = run_process({.command = {"bash", "-c", "ulimit -s 64; exec " + std::string(command)},
                               .environment = {},
                               .without = {}});
    CAPTURE(command, result.errors);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.errors, ContainsSubstring("limited to 64 KiB (ulimit -s)"));
  }
}

TEST_CASE("bad_input of an actor is the job's exit code, and is not tried again", "[stop]") {
  auto result = run_process(
      {.command = {TROUPE_PROGRAM, "launch", "--nproc-per-node", "2", FAILING_WORKER, "0", "bad-sample"},
       .environment = {},
       .without = {}});
  CAPTURE(result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(last_line_of(result.errors), ContainsSubstring("sample 3 has no label of these 8"));
  CHECK_THAT(result.errors, !ContainsSubstring("restarts"));
}

TEST_CASE("training that ends by --epochs before --steps reports that once", "[stop]") {
  auto ran = run_launched(2, {"--size", "tiny", "--batch", "64", "--epochs", "1", "--steps", "100000"}, {},
                          example::gpt);
  auto steps = ran.named("step").size();
  CHECK(steps > 0);
  CHECK(steps < 100000);
  auto expected = "training ends after " + std::to_string(steps) +
                  " steps, the one epoch of --epochs, before the 100000 of --steps";
  auto first = ran.process.errors.find(expected);
  CHECK_THAT(ran.process.errors, ContainsSubstring(expected));
  CHECK(ran.process.errors.find(expected, first + 1) == std::string::npos);
}

TEST_CASE("SIGTERM at once after rank 0 was killed saves what the other ranks hold", "[stop]") {
  temp_folder folder;
  auto mark = "TROUPE_TEST_OF=" + folder.path().string();
  auto options =
      launched_job(join(long_job(), {"--snapshot-dir", folder.path().string(), "--disk-every", "1000000"}));
  options.environment = {{"TROUPE_TEST_OF", folder.path().string()}};
  background_process job(options);
  job.wait_for_line("\"step\":5");
  ::kill(process_with({mark, "RANK=0"}), SIGKILL);
  job.signal(SIGTERM);
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.errors, EndsWith(": --resume continues from there\n"));
  CHECK(saved_step(result.errors) >= 5);
  check_resumes(folder.path(), saved_step(result.errors));
}

TEST_CASE("a replacement that is stopped before it joins is killed and started again", "[stop]") {
  temp_folder folder;
  auto path = folder.path().string();
  // The first process that finds the file, which is the replacement, stops before it becomes the program.
  words program{"sh", "-c",
                "[ -e \"$0/stop\" ] && mkdir \"$0/stopped\" 2>/dev/null && kill -STOP $$; exec \"$@\"", path,
                FASHION_MNIST_PROGRAM};
  words launcher{TROUPE_PROGRAM, "launch", "--json", "--nproc-per-node", "4", "--join-timeout", "5s", "--"};
  auto options = launched_job({});
  options.command = join(join(launcher, program), join(long_job(), {"--steps", "400"}));
  options.environment = {{"TROUPE_TEST_OF", path}};
  background_process job(options);
  job.wait_for_line("\"step\":5");
  std::ofstream(folder.path() / "stop").flush();
  ::kill(process_with({"TROUPE_TEST_OF=" + path, "RANK=1"}), SIGKILL);
  auto result = job.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 0);
  CHECK(std::filesystem::exists(folder.path() / "stopped"));
  CHECK_THAT(result.errors, ContainsSubstring("did not join the job within 5.0 s (--join-timeout)"));
  words alone{"--batch", "64", "--microbatches", "4", "--epochs", "1000", "--stages", "4", "--steps", "400"};
  CHECK_THAT(result.output, ContainsSubstring(run_local(alone).weights_sha256()));
}
