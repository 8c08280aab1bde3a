// What a user can get wrong. Each ends (or goes on, where it can) with a message that says what was expected,
// what came and what to do. It leaves an exit code that is not 0, and no process.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>

#include "jobs/worker_job.hpp"
#include "runtime/files/mounted_tmpfs.hpp"
#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"
#include "support/text_of.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

using variables = std::map<std::string, std::string>;

const fs::path fashion_mnist_folder = "/usr/share/datasets/fashion-mnist";

/// Every process that a test starts inherits this variable, whatever becomes of its parent.
const std::string& mark() {
  static const auto made = "TROUPE_TEST_MARK=bad-input-" + std::to_string(::getpid());
  return made;
}

int num_processes_left() {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    auto environment = text_of(entry.path() / "environ");
    if (environment.find(mark()) != std::string::npos) ++count;
  }
  return count;
}

run_options marked_options(words command, variables environment) {
  environment.emplace("TROUPE_TEST_MARK", mark().substr(mark().find('=') + 1));
  return {.command = std::move(command),
          .environment = std::move(environment),
          .without = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TROUPE_JOB_SECRET"},
          .deadline = std::chrono::minutes(2)};
}

process_result run(words command, variables environment = {}) {
  auto result = run_process(marked_options(std::move(command), std::move(environment)));
  CHECK(result.signal == 0);
  CHECK(num_processes_left() == 0);
  return result;
}

/// With those options of a short job that are not among `options`.
words example_with(const words& options) {
  words command = {FASHION_MNIST_PROGRAM};
  for (const auto& usual : {words{"--steps", "4"}, {"--batch", "64"}, {"--microbatches", "4"}})
    if (std::ranges::find(options, usual.front()) == options.end()) command = join(command, usual);
  return join(command, options);
}

words under_launcher(const words& program, const words& launch_options = {}) {
  return join(join({TROUPE_PROGRAM, "launch", "--nproc-per-node", "2"}, launch_options),
              join({"--"}, program));
}

/// Bad input: exit code 2 in one process and, without starting anything again, under the launcher.
void check_refused(const words& options, const words& texts) {
  auto many = GENERATE(false, true);
  auto result = run(many ? under_launcher(example_with(options)) : example_with(options));
  INFO((many ? "launched\n" : "alone\n") << result.output << result.errors);
  CHECK(result.exit_code == 2);
  for (const auto& text : texts) CHECK_THAT(result.errors, ContainsSubstring(text));
}

std::string weights_of(const process_result& result) {
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  auto found = result.output.find("\"weights_sha256\":\"");
  REQUIRE(found != std::string::npos);
  return result.output.substr(found + 18, 64);
}

/// The data set's files, which a test may then damage.
void copy_data_set(const fs::path& to) {
  for (const auto& entry : fs::directory_iterator(fashion_mnist_folder))
    fs::copy_file(entry.path(), to / entry.path().filename());
}

/// A TCP port on loopback on which a socket of this test listens.
class taken_port {
 public:
  taken_port() {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(socket_, generic, size) == 0);
    REQUIRE(::listen(socket_, 1) == 0);
    REQUIRE(::getsockname(socket_, generic, &size) == 0);
    number_ = std::to_string(ntohs(address.sin_port));
  }
  taken_port(const taken_port&) = delete;
  taken_port& operator=(const taken_port&) = delete;
  ~taken_port() { ::close(socket_); }

  const std::string& number() const { return number_; }

 private:
  int socket_ = -1;
  std::string number_;
};

variables variables_by_hand(int rank, const std::string& port, const std::string& secret = "") {
  variables made = {{"RANK", std::to_string(rank)},
                    {"WORLD_SIZE", "2"},
                    {"MASTER_ADDR", "127.0.0.1"},
                    {"MASTER_PORT", port}};
  if (!secret.empty()) made["TROUPE_JOB_SECRET"] = secret;
  return made;
}

/// A file of a snapshot: not the lock of the job that writes to the folder.
bool is_file_of_snapshot(const fs::directory_entry& entry) {
  return entry.is_regular_file() && entry.path().filename() != "job.lock";
}

fs::path newest_snapshot(const fs::path& folder) {
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path() > newest) newest = entry.path();
  return newest;
}

}  // namespace

TEST_CASE("a process of a launcher that is not understood runs alone, and says what was seen",
          "[bad_input]") {
  auto result = run({FASHION_MNIST_PROGRAM, "--steps", "1", "--batch", "64", "--microbatches", "4"},
                    {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors,
             ContainsSubstring("MPICH or Intel MPI as one of several (PMI_RANK=1, PMI_SIZE=2)"));
}

TEST_CASE("more stages than layers", "[bad_input]") {
  check_refused({"--stages", "30"}, {"30 stages", "5 layers", "at most"});
}

TEST_CASE("more devices than stages", "[bad_input]") {
  check_refused({"--stages", "1", "--devices", "2"}, {"devices", "stages", "--stages"});
}

TEST_CASE("microbatches that do not divide the batch", "[bad_input]") {
  check_refused({"--microbatches", "7"}, {"batch of 64", "7", "--microbatches"});
}

TEST_CASE("stages and microbatches that a schedule does not allow", "[bad_input]") {
  check_refused({"--schedule", "zb_v", "--stages", "3", "--devices", "2"},
                {"zb_v", "3 for 2 devices", "Use 4 stages"});
  check_refused({"--schedule", "interleaved_1f1b", "--stages", "3", "--devices", "3"}, {"Use 3 or 6, not 4"});
  check_refused({"--schedule", "dualpipe_v", "--stages", "4", "--devices", "2", "--microbatches", "2"},
                {"dualpipe_v", "Use 4 or more"});
  check_refused({"--schedule", "sideways"}, {"sideways", "zb_h1, zb_h2, zb_v, dualpipe_v, pipedream_2bw"});
}

TEST_CASE("a plan in a file that is none, or not for this job", "[bad_input]") {
  temp_folder folder;
  auto file = [&folder](const std::string& name, const std::string& text) {
    auto path = folder.path() / name;
    std::ofstream(path) << text;
    return path.string();
  };
  auto two = file("two.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  check_refused({"--plan", "/nowhere.csv"}, {"/nowhere.csv", "cannot be read", "--csv"});
  check_refused({"--plan", two, "--schedule", "1f1b"}, {"--plan", "--schedule", "one of them"});
  check_refused({"--plan", two, "--devices", "2"}, {two, "2 microbatches", "--microbatches 2"});
  check_refused({"--plan", file("three.csv", "0F0,0B0\n1F0,1B0\n2F0,2B0\n"), "--microbatches", "1"},
                {"three.csv", "3 devices", "--devices"});
  check_refused({"--plan", two, "--microbatches", "2", "--devices", "2", "--stages", "3"},
                {two, "2 stages", "Leave --stages out"});
  check_refused(
      {"--plan", file("forwards.csv", "0F0,0F1\n1F0,1F1\n"), "--microbatches", "2", "--devices", "2"},
      {"forwards.csv", "forwards only"});
  check_refused({"--plan", file("circle.csv", "0F0,0B0\n1B0,1F0\n"), "--microbatches", "1", "--devices", "2"},
                {"circle.csv", "1B0 [line 2 (rank 1), cell 1]"});
}

TEST_CASE("an option that does not exist", "[bad_input]") { check_refused({"--epoch", "3"}, {"--epoch"}); }

TEST_CASE("an option with a value that is no number", "[bad_input]") {
  check_refused({"--batch", "many"}, {"--batch", "expected a whole number", "many"});
  check_refused({"--learning-rate", "-1"}, {"--learning-rate must be a number above 0"});
}

TEST_CASE("an unknown YAML key, and a file that is not there", "[bad_input]") {
  temp_folder folder;
  auto file = folder.path() / "job.yaml";
  std::ofstream(file) << "batch: 64\nepoch: 3\n";
  check_refused({"--config", file}, {file.string() + ":2", "unknown key 'epoch'", "did you mean 'epochs'"});
  check_refused({"--config", file.string() + "x"}, {file.string() + "x", "No such file"});
}

TEST_CASE("a data set that is not there", "[bad_input]") {
  check_refused({"--data", "/nowhere"}, {"'/nowhere' does not exist", "--data", "dataset-fashion-mnist"});
}

TEST_CASE("a data set file that is missing or truncated", "[bad_input]") {
  temp_folder folder;
  copy_data_set(folder.path());
  auto images = folder.path() / "train-images-idx3-ubyte.gz";
  auto what = GENERATE(as<std::string>(), "missing", "truncated in the header", "truncated later");
  INFO(what);
  if (what == "missing")
    fs::remove(images);
  else
    fs::resize_file(images, what == "truncated later" ? 1'000'000 : 12);
  auto many = GENERATE(false, true);
  auto program = example_with({"--data", folder.path()});
  auto result = run(many ? under_launcher(program) : program);
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, !ContainsSubstring("restarts"));
  CHECK_THAT(result.errors, ContainsSubstring(images.string()) && ContainsSubstring("--data"));
}

TEST_CASE("RANK without WORLD_SIZE, and impossible ranks", "[bad_input]") {
  struct wrong {
    variables environment;
    std::string text;
  };
  auto one =
      GENERATE(wrong{{{"RANK", "0"}}, "WORLD_SIZE is not"}, wrong{{{"WORLD_SIZE", "2"}}, "RANK is not"},
               wrong{{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "expected a number from 0 to 1, got '2'"},
               wrong{{{"RANK", "first"}, {"WORLD_SIZE", "2"}}, "got 'first'"});
  auto result = run(example_with({}), one.environment);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring(one.text));
}

TEST_CASE("a port in use", "[bad_input]") {
  taken_port port;
  auto by_launcher = GENERATE(false, true);
  auto result = by_launcher
                    ? run(under_launcher(example_with({}), {"--master-port", port.number()}))
                    : run(example_with({}), variables_by_hand(0, port.number(), std::string(64, 'a')));
  INFO(result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring(port.number()) && ContainsSubstring("in use"));
}

TEST_CASE("a wrong secret", "[bad_input]") {
  auto port = port_of_this_process();
  background_process first(marked_options(example_with({"--join-timeout", "10s"}),
                                          variables_by_hand(0, port, std::string(64, 'a'))));
  auto unauthenticated = run_process(marked_options(example_with({"--join-timeout", "10s"}),
                                                    variables_by_hand(1, port, std::string(64, 'b'))));
  INFO(unauthenticated.errors);
  CHECK(unauthenticated.exit_code == 2);
  CHECK_THAT(unauthenticated.errors, ContainsSubstring("secret"));
  auto result = first.wait();
  INFO(result.errors);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.errors, ContainsSubstring("rank 1"));
}

TEST_CASE("a malformed secret", "[bad_input]") {
  auto result = run(example_with({}), variables_by_hand(0, port_of_this_process(), "hush"));
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("TROUPE_JOB_SECRET") && !ContainsSubstring("hush"));
}

TEST_CASE("a worker that never joins is named", "[bad_input]") {
  SECTION("by rank 0 of processes started by hand") {
    auto result = run(example_with({"--join-timeout", "1s"}), variables_by_hand(0, port_of_this_process()));
    INFO(result.errors);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.errors, ContainsSubstring("rank 1") && ContainsSubstring("join"));
  }
  SECTION("if it is rank 0") {
    auto result = run(example_with({"--join-timeout", "1s"}), variables_by_hand(1, port_of_this_process()));
    INFO(result.errors);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.errors, ContainsSubstring("rank 0"));
  }
  SECTION("by the launcher, which ends it") {
    auto stubborn = "[ $RANK = 1 ] && exec sleep 1000; exec \"$@\"";
    auto result =
        run(under_launcher(join({"sh", "-c", stubborn, "sh"}, example_with({})), {"--join-timeout", "2"}));
    INFO(result.errors);
    CHECK(result.exit_code != 0);
    CHECK_THAT(result.errors, ContainsSubstring("rank 1") && ContainsSubstring("join"));
  }
}

TEST_CASE("a program that cannot be started", "[bad_input]") {
  auto result = run(under_launcher({"/nowhere/program"}));
  CHECK(result.exit_code != 0);
  CHECK_THAT(result.errors, ContainsSubstring("/nowhere/program") && ContainsSubstring("no such file"));
}

TEST_CASE("folders that cannot be written to are refused before the first step, on any rank that needs them",
          "[bad_input]") {
  temp_folder folder;
  auto file = folder.path() / "file";
  std::ofstream(file) << "in the way";
  SECTION("for snapshots") {
    check_refused({"--snapshot-dir", file / "snapshots"}, {"--snapshot-dir", file.string()});
  }
  SECTION("for traces") { check_refused({"--trace-dir", file / "traces"}, {"--trace-dir", file.string()}); }
  SECTION("on another rank than 0") {
    auto other = folder.path() / "other";
    auto by_rank = "exec \"$@\" --trace-dir " + folder.path().string() + "/file/rank$RANK";
    fs::remove(file);
    fs::create_directory(file);
    std::ofstream(file / "rank1") << "in the way";
    auto result = run(under_launcher(join({"sh", "-c", by_rank, "sh"}, example_with({}))));
    INFO(result.errors);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.errors, ContainsSubstring("rank 1: --trace-dir"));
  }
}

TEST_CASE("training continues without snapshots when the disk is full, with a warning", "[bad_input]") {
  mounted_tmpfs small("1m");
  auto result = run(example_with({"--snapshot-dir", small.path() / "snapshots", "--disk-every", "2"}));
  INFO(result.errors);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.errors, ContainsSubstring("training continues") && ContainsSubstring("No space left"));
  for (const auto& entry : fs::recursive_directory_iterator(small.path() / "snapshots"))
    CHECK_FALSE(is_file_of_snapshot(entry));
}

TEST_CASE("results that cannot be written to standard output are an error", "[bad_input]") {
  auto full = [](const words& command) {
    return run(join({"sh", "-c", "exec \"$@\" >/dev/full", "sh"}, command));
  };
  temp_folder folder;
  for (const auto& command :
       {example_with({}), example_with({"--json"}), words{TROUPE_PROGRAM, "schedule"},
        words{TROUPE_PROGRAM, "schedule", "--json"}, words{TROUPE_PROGRAM, "snapshot", "list", folder.path()},
        words{TROUPE_PROGRAM, "doctor"}}) {
    auto result = full(command);
    INFO(command[0] << ' ' << command[1] << '\n' << result.errors);
    CHECK(result.exit_code != 0);
    CHECK_THAT(result.errors, ContainsSubstring("standard output"));
  }
}

TEST_CASE("resuming without a usable snapshot is refused, naming each one, and changes none", "[bad_input]") {
  temp_folder folder;
  auto snapshots = folder.path() / "snapshots";
  words job = {"--steps", "8", "--stages", "4", "--snapshot-dir", snapshots, "--disk-every", "4"};
  REQUIRE(run(example_with(job)).exit_code == 0);
  std::map<std::string, std::string> before;
  for (const auto& entry : fs::recursive_directory_iterator(snapshots)) {
    if (!is_file_of_snapshot(entry)) continue;
    if (entry.path().filename().string().starts_with("stage-"))
      std::fstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary).seekp(300).put('!');
    before[entry.path()] = text_of(entry.path());
  }
  REQUIRE(before.size() == 12);  // of each of two: four stages, the calls, the manifest
  auto check = [&](const process_result& result, bool tells) {
    INFO(result.output << result.errors);
    CHECK(result.exit_code == 2);
    if (tells)
      for (auto text : {"step 8", "step 4", "stage-0000.part", "checksum", "--fresh-start"})
        CHECK_THAT(result.errors, ContainsSubstring(text));
    CHECK(result.output.find("\"step\"") == std::string::npos);
    std::map<std::string, std::string> after;
    for (const auto& entry : fs::recursive_directory_iterator(snapshots))
      if (is_file_of_snapshot(entry)) after[entry.path()] = text_of(entry.path());
    CHECK(after == before);
  };
  auto resumed =
      example_with({"--steps", "12", "--stages", "4", "--snapshot-dir", snapshots, "--resume", "--json"});
  SECTION("in one process") { check(run(resumed), true); }
  SECTION("four processes under troupe launch") {
    auto result = run(join({TROUPE_PROGRAM, "launch", "--nproc-per-node", "4", "--"}, resumed));
    check(result, true);
    CHECK_THAT(result.errors, !ContainsSubstring("restarts"));
  }
  SECTION("processes started without troupe launch, as by mpirun, each end with bad input") {
    auto port = port_of_this_process();
    std::string secret(64, 'a');
    background_process second(marked_options(resumed, variables_by_hand(1, port, secret)));
    check(run_process(marked_options(resumed, variables_by_hand(0, port, secret))), true);
    check(second.wait(), false);
  }
  SECTION("a requested fresh start keeps them under other names") {
    check_refused({"--stages", "4", "--snapshot-dir", snapshots}, {"--resume", "--fresh-start"});
    auto fresh = run(example_with({"--stages", "4", "--snapshot-dir", snapshots, "--fresh-start"}));
    CHECK(fresh.exit_code == 0);
    CHECK(text_of(snapshots / "set-aside-step-000000000008" / "stage-0003.part") ==
          before[snapshots / "step-000000000008" / "stage-0003.part"]);
    auto listed = run({TROUPE_PROGRAM, "snapshot", "list", "--json", snapshots});
    CHECK_THAT(listed.output, ContainsSubstring("\"step\":4,\"state\":\"ok\"") &&
                                  ContainsSubstring("\"step\":8,\"state\":\"set aside\""));
  }
}

TEST_CASE("a damaged newest snapshot is named, and the previous one is used", "[bad_input]") {
  temp_folder folder;
  auto snapshots = folder.path() / "snapshots";
  words job = {"--steps", "8", "--snapshot-dir", snapshots, "--disk-every", "4"};
  REQUIRE(run(example_with(job)).exit_code == 0);
  auto damaged = newest_snapshot(snapshots);
  fs::path part;
  for (const auto& entry : fs::directory_iterator(damaged))
    if (entry.path().extension() != ".json") part = entry.path();
  INFO(part);
  fs::resize_file(part, fs::file_size(part) - 1);
  auto resumed = run(example_with({"--steps", "12", "--snapshot-dir", snapshots, "--resume", "--json"}));
  INFO(resumed.errors);
  CHECK_THAT(resumed.errors, ContainsSubstring(part.filename().string()));
  CHECK(resumed.output.find("{\"event\":\"step\",") < resumed.output.find("\"step\":5,"));
  CHECK(resumed.output.find("\"step\":4,") == std::string::npos);
  CHECK_THAT(resumed.output, ContainsSubstring(R"({"event":"resumed","from":"snapshot","step":4})"));
  CHECK(weights_of(resumed) == weights_of(run(example_with({"--steps", "12", "--json"}))));
  auto aside = snapshots / ("set-aside-" + damaged.filename().string());
  CHECK(fs::exists(aside / part.filename()));
  CHECK_THAT(run({TROUPE_PROGRAM, "snapshot", "verify", snapshots}).output,
             ContainsSubstring("step 8: set aside"));
}

TEST_CASE("snapshots of another job are neither used nor overwritten by default", "[bad_input]") {
  temp_folder folder;
  auto snapshots = folder.path() / "snapshots";
  REQUIRE(run(example_with({"--snapshot-dir", snapshots})).exit_code == 0);
  check_refused({"--snapshot-dir", snapshots}, {snapshots.string(), "--resume"});
  auto other = run(example_with({"--snapshot-dir", snapshots, "--resume", "--seed", "7"}));
  INFO(other.errors);
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.errors, ContainsSubstring("seed is 7, the snapshot has 1"));
}

TEST_CASE("resuming in an empty folder starts from the initial weights and reports that", "[bad_input]") {
  check_refused({"--resume"}, {"--resume", "--snapshot-dir"});
  temp_folder folder;
  auto result = run(example_with({"--resume", "--snapshot-dir", folder.path(), "--json"}));
  INFO(result.errors);
  CHECK_THAT(result.errors,
             ContainsSubstring("there is no snapshot in") && ContainsSubstring(folder.path().string()));
  CHECK_THAT(result.output, ContainsSubstring(R"({"event":"resumed","from":"initial weights","step":0})"));
  CHECK(weights_of(result) == weights_of(run(example_with({"--json"}))));
}

TEST_CASE("a mistyped option of an example is refused with a suggestion, and --version prints its version",
          "[bad_input]") {
  auto mistyped = run({FASHION_MNIST_PROGRAM, "--microbatch", "4"});
  CHECK(mistyped.exit_code == 2);
  CHECK_THAT(mistyped.errors, ContainsSubstring("did you mean '--microbatches'?"));
  auto version = run({FASHION_MNIST_PROGRAM, "--version"});
  CHECK(version.exit_code == 0);
  CHECK_THAT(version.output, ContainsSubstring("troupe 0.") && ContainsSubstring("(commit "));
}
