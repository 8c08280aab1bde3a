#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launch_command_line.hpp"
#include "support/temp_folder.hpp"
#include "support/text_of.hpp"
#include "troupe/trace/process_events.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

run_options launch_shell(std::vector<std::string> options, const std::string& script) {
  std::vector<std::string> command = {TROUPE_PROGRAM, "launch"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"sh", "-c", script});
  return {.command = std::move(command), .environment = {}, .without = {}};
}

/// The first recovery in the output of a job with --json.
nlohmann::json recovery_in(const std::string& output) {
  auto begin = output.find("{\"event\":\"recovery\"");
  REQUIRE(begin != output.npos);
  return nlohmann::json::parse(output.substr(begin, output.find('\n', begin) - begin));
}

}  // namespace

TEST_CASE("lines have their rank as a prefix and are never split, however they are written") {
  auto script =
      "i=0; while [ $i -lt 200 ]; do printf 'be'; printf 'gin %s' $i; echo ' end'; i=$((i+1)); done";
  auto result = run_process(launch_shell({"--nproc-per-node", "3"}, script));
  CHECK(result.exit_code == 0);
  std::istringstream lines(result.output);
  std::map<std::string, int> next;
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    auto rank = line.substr(0, 4);
    CHECK(line == rank + "begin " + std::to_string(next[rank]++) + " end");
  }
  CHECK(count == 600);
  CHECK(next.size() == 3);
}

TEST_CASE("standard error is forwarded to standard error, and an unfinished last line is completed") {
  auto result = run_process(launch_shell({}, "printf result; printf trouble >&2"));
  CHECK(result.output == "[0] result\n");
  CHECK(result.errors == "[0] trouble\n");
}

TEST_CASE("log files hold the output of each process, one pair for each incarnation") {
  temp_folder folder;
  auto script = "echo from $RANK; echo oh >&2; [ $RANK.$TROUPE_INCARNATION != 1.0 ]";
  auto result = run_process(
      launch_shell({"--nproc-per-node", "2", "--log-dir", (folder.path() / "logs").string()}, script));
  CHECK(result.exit_code == 0);
  for (auto* name : {"rank-0.0", "rank-1.0", "rank-1.1"}) {
    CAPTURE(name);
    CHECK(text_of(folder.path() / "logs" / (name + std::string(".out"))) ==
          "from " + std::string(1, name[5]) + "\n");
    CHECK(text_of(folder.path() / "logs" / (name + std::string(".err"))) == "oh\n");
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "logs" / "rank-0.1.out"));
}

TEST_CASE("with --json standard output holds only the output of rank 0") {
  auto result =
      run_process(launch_shell({"--nproc-per-node", "2", "--json"}, "echo \"{\\\"rank\\\":$RANK}\""));
  CHECK(result.output == "{\"rank\":0}\n");
  CHECK(result.errors == "[1] {\"rank\":1}\n");
}

TEST_CASE("with --json a recovery is an object on standard output") {
  auto result = run_process(launch({"--nproc-per-node", "2", "--json"}, {"2", "1.0=kill"}));
  CHECK(result.exit_code == 0);
  auto event = recovery_in(result.output);
  CHECK(event["rank"] == 1);
  CHECK(event["cause"] == "killed by SIGKILL");
  CHECK(event["kept_running"] == 1);
  double sum = 0;
  for (auto* phase : {"detect", "fence", "quiesce", "respawn", "restore", "rebuild", "replay"})
    sum += event[phase].get<double>();
  CHECK(std::abs(sum - event["seconds"].get<double>()) < 1e-6);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1 was killed by SIGKILL at step"));
}

TEST_CASE("a reader that closes its end keeps no job from going on, and the exit code is that of SIGPIPE") {
  auto result = run_in_shell("{ " + std::string(TROUPE_PROGRAM) +
                             " launch sh -c 'seq 100000; echo done >&2'; echo code $? >&2; } | head -1");
  CHECK(result.output == "[0] 1\n");
  CHECK(result.errors == "[0] done\ncode 141\n");
}

TEST_CASE("a standard output that cannot be written is warned of once, and the job goes on and ends with 1") {
  auto launch = std::string(TROUPE_PROGRAM) + " launch --max-restarts 0 sh -c ";
  for (auto [to, error] :
       {std::pair{">/dev/full", "No space left on device"}, {">&-", "Bad file descriptor"}}) {
    CAPTURE(to);
    auto result = run_in_shell(launch + "'echo 1; sleep 0.2; echo 2; sleep 0.2; echo done >&2' " + to);
    CHECK(result.exit_code == 1);
    CHECK(result.errors == std::string("troupe: cannot write to standard output, results are missing: ") +
                               error + "\n[0] done\n");
    CHECK(run_in_shell(launch + "'echo 1; exit 3' " + to).exit_code == 3);
  }
}

TEST_CASE("a log file that cannot be written is warned of once, and the job goes on") {
  temp_folder folder;
  // Rank 1 writes more than its file may hold, several times.
  auto result =
      run_in_shell("ulimit -f 3; TROUPE_EVENTS=0 " + std::string(TROUPE_PROGRAM) +
                   " launch --nproc-per-node 2 --log-dir " + folder.path().string() +
                   " sh -c 'for i in 1 2 3; do [ $RANK = 0 ] || seq 5000; echo $i; sleep 0.1; done'");
  CAPTURE(result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, StartsWith("troupe: cannot write the log file " +
                                       (folder.path() / "rank-1.0.out").string() + ": File too large"));
  CHECK(std::ranges::count(result.errors, '\n') == 1);
  CHECK_THAT(result.output, ContainsSubstring("[1] 3\n"));
  CHECK(text_of(folder.path() / "rank-0.0.out") == "1\n2\n3\n");
}

TEST_CASE("a log file has all that it has room for") {
  temp_folder folder;
  auto file = folder.path() / "rank-0.0.out";
  // The unit is 512 bytes in some shells and 1,024 in others.
  auto result = run_in_shell("ulimit -f 3; TROUPE_EVENTS=0 " + std::string(TROUPE_PROGRAM) +
                             " launch --log-dir " + folder.path().string() + " seq 10000 | tail -1");
  CHECK(result.output == "[0] 10000\n");
  CHECK_THAT(result.errors, ContainsSubstring(file.string() + ": File too large"));
  auto size_bytes = std::filesystem::file_size(file);
  CHECK((size_bytes == 3 * 512 || size_bytes == 3 * 1024));
}

TEST_CASE("a process whose log file cannot be made is started again without it") {
  temp_folder folder;
  std::filesystem::create_directory(folder.path() / "rank-0.1.out");
  auto result = run_process(launch_shell({"--log-dir", folder.path().string()},
                                         "echo $TROUPE_INCARNATION; [ $TROUPE_INCARNATION = 1 ]"));
  CAPTURE(result.errors);
  CHECK(result.exit_code == 0);
  CHECK(result.output == "[0] 0\n[0] 1\n");
  CHECK_THAT(result.errors, ContainsSubstring("rank-0.1.out: Is a directory. The job goes on without it"));
}

TEST_CASE("processes that are lost together are all named, in the text and in the object") {
  auto result =
      run_process(launch({"--nproc-per-node", "4", "--json", "--drill", "1@3", "--drill", "2@3"}, {"2"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("ranks 1 and 2 were killed by SIGKILL at step ") &&
                                ContainsSubstring("2 other processes kept running"));
  auto event = recovery_in(result.output);
  CHECK(event["losses"] == nlohmann::json::parse(R"([{"rank":1,"cause":"killed by SIGKILL"},
                                                     {"rank":2,"cause":"killed by SIGKILL"}])"));
  CHECK(event["kept_running"] == 2);
}

TEST_CASE("every process gets its own rank variables and none that were set before") {
  auto options =
      launch_shell({"--nproc-per-node", "2"},
                   "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $TROUPE_INCARNATION $TROUPE_AGENT "
                   "${#TROUPE_JOB_SECRET} $MASTER_ADDR");
  options.environment = {{"RANK", "77"}, {"TROUPE_JOB_SECRET", "old"}, {"WORLD_SIZE", "78"}};
  auto result = run_process(options);
  CHECK_THAT(result.output, ContainsSubstring("[0] 0/2 0/2 0 1 64 127.0.0.1\n") &&
                                ContainsSubstring("[1] 1/2 1/2 0 1 64 127.0.0.1\n"));
}

TEST_CASE("a failure that all processes report is shown once, and logged for each") {
  temp_folder folder;
  auto result = run_process(launch_shell({"--nproc-per-node", "3", "--log-dir", folder.path().string()},
                                         "echo 'sh: no such file' >&2; echo other >&2"));
  CHECK(result.exit_code == 0);
  auto first = result.errors.find("sh: no such file");
  REQUIRE(first != result.errors.npos);
  CHECK(result.errors.find("sh: no such file", first + 1) == result.errors.npos);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK_THAT(result.errors, ContainsSubstring("[" + std::to_string(rank) + "] other"));
    CHECK_THAT(text_of(folder.path() / ("rank-" + std::to_string(rank) + ".0.err")),
               ContainsSubstring("sh: no such file"));
  }
}

TEST_CASE("the last events of a killed process are kept and said where, those of others not") {
  temp_folder folder;
  auto result =
      run_process(launch({"--nproc-per-node", "2", "--log-dir", folder.path().string()}, {"2", "1.0=kill"}));
  CAPTURE(result.output, result.errors);
  CHECK(result.exit_code == 0);
  auto file = folder.path() / "events-1.0.bin";
  CHECK_THAT(result.errors, ContainsSubstring("troupe: the last events of rank 1 are in " + file.string()));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "events-0.0.bin"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "events-1.1.bin"));
  auto left = troupe::trace::read_events(file);
  CHECK(left.rank == 1);
  CHECK(left.incarnation == 0);
  REQUIRE(left.threads.size() == 1);
  CHECK(left.threads[0].name == "main");
  CHECK(describe(left, left.threads[0].events.at(0)) == "F stage 2 microbatch 3 step 41");
  auto shown = run_process({.command = {TROUPE_PROGRAM, "events", file.string(), "--trace",
                                        (folder.path() / "trace.json").string()},
                            .environment = {},
                            .without = {}});
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.output, ContainsSubstring("rank 1, incarnation 0") &&
                               ContainsSubstring("F stage 2 microbatch 3 step 41"));
  CHECK_THAT(text_of(folder.path() / "trace.json"), ContainsSubstring("\"microbatch\":3"));
  auto refused =
      run_process({.command = {TROUPE_PROGRAM, "events", file.string(), "--trace", "/nowhere/t.json"},
                   .environment = {},
                   .without = {}});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.errors,
             ContainsSubstring("/nowhere/t.json.partial: No such file or directory. Name another file"));
}

TEST_CASE("a job whose events are switched off keeps none") {
  temp_folder folder;
  auto options = launch({"--nproc-per-node", "2", "--log-dir", folder.path().string()}, {"2", "1.0=kill"});
  options.environment = {{"TROUPE_EVENTS", "0"}};
  auto result = run_process(options);
  CHECK(result.exit_code == 0);
  CHECK(result.errors.find("last events") == result.errors.npos);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "events-1.0.bin"));
}

TEST_CASE("log files and a folder that is made are for their user alone, and have no inspector's token") {
  temp_folder folder;
  auto logs = folder.path() / "logs", log = logs / "rank-0.0.err";
  auto script =
      "umask 022; echo inspector: http://127.0.0.1:80/#token=5f0c >&2; printf '#tok' >&2; "
      "printf 'en=5f0c\" end\n' >&2";
  auto options = launch_shell({"--log-dir", logs.string() + "/"}, script);
  auto result = run_process(options);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("#token=5f0c"));
  CHECK(text_of(log) == "inspector: http://127.0.0.1:80/#token=(not logged)\n#token=(not logged)\" end\n");
  auto permissions = [](const std::filesystem::path& file) {
    return static_cast<unsigned>(std::filesystem::status(file).permissions());
  };
  CHECK(permissions(logs) == 0700);
  CHECK(permissions(log) == 0600);
  CHECK(permissions(logs / "rank-0.0.out") == 0600);
}

TEST_CASE("a log file that leads to another file is refused, and that file stays") {
  temp_folder folder;
  auto precious = folder.path() / "precious", logs = folder.path() / "logs";
  std::ofstream(precious) << "text";
  std::filesystem::create_directory(logs);
  std::filesystem::create_symlink(precious, logs / "rank-0.0.out");
  auto result = run_process(launch_shell({"--log-dir", logs.string()}, "echo result"));
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors,
             ContainsSubstring("rank-0.0.out: it is a symbolic link. Choose another --log-dir"));
  CHECK(text_of(precious) == "text");
}

TEST_CASE("a log folder may be a symbolic link, and one that others may change is warned of") {
  temp_folder folder;
  auto logs = folder.path() / "logs", link = folder.path() / "link";
  std::filesystem::create_directory(logs);
  std::filesystem::create_directory_symlink(logs, link);
  auto run = [&] { return run_process(launch_shell({"--log-dir", link.string()}, "echo result")); };
  CHECK(run().errors.empty());
  CHECK(text_of(logs / "rank-0.0.out") == "result\n");
  std::filesystem::permissions(logs, std::filesystem::perms::all);
  auto result = run();
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("is not safe: everybody may write to it (mode 0777)"));
}
