#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/snapshot/snapshot_store.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using nlohmann::json;

namespace {

/// Standard output as --json promises it: one object per line and nothing else.
std::vector<json> objects_in(const std::string& output) {
  std::vector<json> parsed;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) parsed.push_back(json::parse(line));
  return parsed;
}

/// Runs `troupe snapshot <arguments>`.
testing::process_result run(const std::string& arguments) {
  return testing::run_in_shell(std::string(TROUPE_PROGRAM) + " snapshot " + arguments);
}

/// A folder with whole snapshots of steps 10 and 20 and the beginning of one of step 30.
class snapshot_folder {
 public:
  snapshot_folder() {
    commit(10);
    commit(20);
    store_.write_part(30, {0}, encoded(30, 0).bytes());
  }
  std::string name() const { return folder_.path().string(); }
  std::filesystem::path part(const std::string& step) const {
    return folder_.path() / ("step-0000000000" + step) / "stage-0001.part";
  }
  void change_a_byte(const std::string& step) const {
    std::fstream stream(part(step), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(200).put('!');
  }

 private:
  static tensor encoded(std::uint64_t step, int stage) {
    auto nan = std::numeric_limits<float>::quiet_NaN();
    return snapshot::encode_part(
        {"job-7",
         step,
         {{.stage = stage}},
         2,
         1,
         "avx2",
         {{std::to_string(stage) + ".weight", tensor::from(std::vector<float>{3, nan, -4}, {3, 1})},
          {std::to_string(stage) + ".weight/nothing", tensor::empty({0})}}});
  }
  void commit(std::uint64_t step) {
    std::vector<snapshot::manifest_part> parts;
    for (int stage : {0, 1}) parts.push_back(store_.write_part(step, {stage}, encoded(step, stage).bytes()));
    store_.commit({"job-7", step, 1, 2, "avx2", "2024-06-07T08:09:10Z", {{"seed", "7"}}, {}, {}, parts, {}});
  }

  testing::temp_folder folder_;
  snapshot::snapshot_store store_{{folder_.path()}};
};

}  // namespace

TEST_CASE("list shows every snapshot, newest first, with its state") {
  snapshot_folder folder;
  std::filesystem::resize_file(folder.part("10"), 5);
  auto text = run("list " + folder.name());
  CHECK(text.exit_code == 0);
  CHECK(text.errors.empty());
  CHECK_THAT(text.output, ContainsSubstring("created") && ContainsSubstring("2024-06-07T08:09:10Z"));
  CHECK_THAT(text.output,
             ContainsSubstring("incomplete") && ContainsSubstring("stage-0001.part has 5 bytes"));

  auto objects = objects_in(run("list --json " + folder.name()).output);
  REQUIRE(objects.size() == 3);
  CHECK(objects[0]["step"] == 30);
  CHECK(objects[0]["state"] == "incomplete");
  CHECK(objects[1]["state"] == "ok");
  CHECK(objects[1]["stages"] == 2);
  CHECK(objects[1]["size_bytes"] > 500);
  CHECK(objects[1]["problem"] == "");
  CHECK(objects[2]["state"] == "damaged");
  CHECK(objects_in(run("list --json --step 20 " + folder.name()).output).size() == 1);
}

TEST_CASE("list of an empty folder reports that and is no failure") {
  testing::temp_folder folder;
  auto text = run("list " + folder.path().string());
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.output, ContainsSubstring("no snapshots"));
  CHECK(run("list --json " + folder.path().string()).output.empty());
}

TEST_CASE("verify passes complete snapshots, and a newer unfinished one is no failure") {
  snapshot_folder folder;
  auto text = run("verify " + folder.name());
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.output,
             ContainsSubstring("step 20: ok (2 parts, ") && ContainsSubstring("step 30: incomplete"));
  auto objects = objects_in(run("verify --json " + folder.name()).output);
  REQUIRE(objects.size() == 3);
  CHECK(objects[1] ==
        json{{"event", "verified"}, {"step", 20}, {"state", "ok"}, {"problems", json::array()}});
}

TEST_CASE("verify fails if the newest snapshot has damage that only reading finds") {
  snapshot_folder folder;
  folder.change_a_byte("20");
  auto text = run("verify " + folder.name());
  CHECK(text.exit_code == 1);
  CHECK_THAT(text.output,
             ContainsSubstring("step 20: damaged") && ContainsSubstring(folder.part("20").string()));
  auto objects = objects_in(run("verify --json " + folder.name()).output);
  CHECK(objects.at(1)["state"] == "damaged");
  CHECK(objects.at(1)["problems"].size() == 1);
  CHECK(run("verify --step 10 " + folder.name()).exit_code == 0);
  CHECK(run("verify --step 20 " + folder.name()).exit_code == 1);
  CHECK(run("verify --step 30 " + folder.name()).exit_code == 1);
}

TEST_CASE("verify names an older damaged snapshot without failing") {
  snapshot_folder folder;
  folder.change_a_byte("10");
  auto text = run("verify " + folder.name());
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.output, ContainsSubstring("step 10: damaged"));
}

TEST_CASE("verify of a folder without snapshots fails") {
  testing::temp_folder folder;
  auto text = run("verify " + folder.path().string());
  CHECK(text.exit_code == 1);
  CHECK_THAT(text.output, ContainsSubstring("no snapshots"));
}

TEST_CASE("list and verify show snapshots set aside, which are not counted") {
  snapshot_folder folder;
  folder.change_a_byte("20");
  auto step = std::filesystem::path(folder.name()) / "step-000000000020";
  std::filesystem::rename(step, std::filesystem::path(folder.name()) / "set-aside-step-000000000020");
  auto listed = objects_in(run("list --json " + folder.name()).output);
  REQUIRE(listed.size() == 3);
  CHECK(listed[2]["step"] == 20);
  CHECK(listed[2]["state"] == "set aside");
  auto verified = run("verify " + folder.name());
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.output, ContainsSubstring("step 20: set aside") && ContainsSubstring("checksum"));
  CHECK(run("verify --step 20 " + folder.name()).exit_code == 1);
  CHECK(objects_in(run("show --json " + folder.name()).output).at(0)["step"] == 10);
}

TEST_CASE("control characters in a file are escaped when they are shown") {
  testing::temp_folder folder;
  snapshot::snapshot_store store({folder.path()});
  auto encoded =
      snapshot::encode_part({"job\x1b[2J", 10, {}, 1, 1, "c", {{"weight\x1b[31m", tensor::full({1}, 1)}}});
  auto part = store.write_part(10, {0}, encoded.bytes());
  store.commit({"job\x1b[2J", 10, 1, 1, "c", "2024\n", {{"seed", "7\r8"}}, {}, {}, {part}, {}});
  for (std::string what : {"list ", "show ", "verify "}) {
    auto text = run(what + folder.path().string());
    CHECK(text.exit_code == 0);
    CHECK(text.output.find_first_of("\x1b\r") == std::string::npos);
  }
  CHECK_THAT(run("show " + folder.path().string()).output,
             ContainsSubstring("job\\x1b[2J") && ContainsSubstring("weight\\x1b[31m"));
}

TEST_CASE("export overwrites regular files only") {
  snapshot_folder folder;
  testing::temp_folder out;
  auto link = out.path() / "link";
  std::filesystem::create_symlink(out.path() / "target", link);
  for (const auto& name : {link.string(), std::string("/dev/null"), out.path().string()}) {
    auto before = std::filesystem::symlink_status(name).type();
    auto refused = run("export --output " + name + " " + folder.name());
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.errors, ContainsSubstring(name) && ContainsSubstring("regular file"));
    CHECK(std::filesystem::symlink_status(name).type() == before);
  }
}

TEST_CASE("show prints the manifest and the statistics of every tensor") {
  snapshot_folder folder;
  auto text = run("show " + folder.name());
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.output, ContainsSubstring("job-7") && ContainsSubstring("seed") &&
                              ContainsSubstring("f32[3, 1]") && ContainsSubstring("stage-0001.part"));
  auto objects = objects_in(run("show --json --step 10 " + folder.name()).output);
  REQUIRE(objects.size() == 5);
  CHECK(objects[0]["event"] == "manifest");
  CHECK(objects[0]["step"] == 10);
  CHECK(objects[0]["identity"]["seed"] == "7");
  CHECK(objects[0]["parts"].size() == 2);
  CHECK(objects[1]["name"] == "0.weight");
  CHECK(objects[1]["shape"] == json::array({3, 1}));
  CHECK(objects[1]["dtype"] == "f32");
  CHECK(objects[1]["min"] == -4);
  CHECK(objects[1]["max"] == 3);
  CHECK(objects[1]["mean"] == -0.5);
  CHECK(objects[1]["nan_count"] == 1);
  CHECK(objects[2]["mean"].is_null());
  CHECK(objects[3]["stage"] == 1);
}

TEST_CASE("export writes the weights of the newest snapshot, or of the step asked for") {
  snapshot_folder folder;
  testing::temp_folder out;
  auto file = out.path() / "weights.safetensors";
  auto done =
      objects_in(run("export --json --step 10 --output " + file.string() + " " + folder.name()).output);
  REQUIRE(done.size() == 1);
  CHECK(done[0].at("step") == 10);
  auto weights = read_safetensors(file);
  CHECK(weights.metadata.at("step") == "10");
  CHECK(weights.metadata.at("format") == "pt");
  CHECK(weights.metadata.at("job") == "job-7");
  CHECK(done[0].at("tensors") == 2);
  CHECK(weights.tensors.size() == 2);
  for (const auto& each : weights.tensors) CHECK(each.name.find('/') == std::string::npos);
  CHECK(run("export --optimizer --output " + file.string() + " " + folder.name()).exit_code == 0);
  CHECK(read_safetensors(file).metadata.at("step") == "20");
  CHECK(read_safetensors(file).tensors.size() == 4);
  CHECK(run("export " + folder.name()).exit_code != 0);
  auto nowhere = run("export --output /nowhere/x " + folder.name());
  CHECK(nowhere.exit_code == 2);
  CHECK_THAT(nowhere.errors, ContainsSubstring("/nowhere/"));
}

TEST_CASE("export writes several files of a size and their index") {
  snapshot_folder folder;
  testing::temp_folder out;
  auto index = out.path() / "model.safetensors.index.json";
  auto done = run("export --max-file-size 16 --output " + index.string() + " " + folder.name());
  CHECK(done.exit_code == 0);
  CHECK(std::filesystem::exists(out.path() / "model-00002-of-00002.safetensors"));
  auto read = read_sharded_safetensors(index);
  CHECK(read.metadata.at("job") == "job-7");
  CHECK(read.tensors.size() == 2);
  auto useless = run("export --max-file-size 16 --output " + (out.path() / "w.safetensors").string() + " " +
                     folder.name());
  CHECK(useless.exit_code == 2);
  CHECK_THAT(useless.errors, ContainsSubstring("name their index with --output"));
  CHECK(run("export --max-file-size 0 --output " + index.string() + " " + folder.name()).exit_code == 2);
  CHECK(run("export --max-file-size many --output " + index.string() + " " + folder.name()).exit_code == 2);
}

TEST_CASE("show of a damaged or unfinished snapshot fails with its reason") {
  snapshot_folder folder;
  folder.change_a_byte("20");
  auto damaged = run("show " + folder.name());
  CHECK(damaged.exit_code == 1);
  CHECK_THAT(damaged.errors, ContainsSubstring(folder.part("20").string()) && ContainsSubstring("checksum"));
  auto unfinished = run("show --step 30 " + folder.name());
  CHECK(unfinished.exit_code == 1);
  CHECK_THAT(unfinished.errors, ContainsSubstring("no manifest"));
}

TEST_CASE("bad input ends with exit code 2 and a message that names it") {
  snapshot_folder folder;
  testing::temp_folder empty;
  for (std::string command : {"list", "verify", "show"}) {
    auto missing = run(command + " /nowhere/at/all");
    CHECK(missing.exit_code == 2);
    CHECK(missing.output.empty());
    CHECK_THAT(missing.errors, ContainsSubstring("/nowhere/at/all"));
    auto step = run(command + " --step 11 --json " + folder.name());
    CHECK(step.exit_code == 2);
    CHECK_THAT(step.errors, ContainsSubstring("step 11"));
    CHECK(run(command + " --step many " + folder.name()).exit_code == 2);
    CHECK(run(command).exit_code == 2);
    CHECK(run(command + " " + folder.part("10").string()).exit_code == 2);
  }
  auto negative = run("show --step -1 " + folder.name());
  CHECK(negative.exit_code == 2);
  CHECK_THAT(negative.errors,
             ContainsSubstring("--step: expected a whole number from 0 on") && ContainsSubstring("got '-1'"));
  auto swallowed = run("export " + folder.name() + " --output= --json");
  CHECK(swallowed.exit_code == 2);
  CHECK_THAT(swallowed.errors, ContainsSubstring("--output needs a value after the '=', got none") &&
                                   ContainsSubstring("troupe snapshot export --help"));
  auto loop = empty.path() / "loop";
  std::filesystem::create_symlink(loop, loop);
  auto unreadable = run("list " + loop.string());
  CHECK(unreadable.exit_code == 2);
  CHECK_THAT(unreadable.errors, ContainsSubstring("cannot read the snapshot folder '" + loop.string() +
                                                  "': Too many levels of symbolic links"));
  std::filesystem::remove(loop);
  CHECK(run("show " + empty.path().string()).exit_code == 2);
  CHECK(run("").exit_code == 2);
  CHECK(run("burn " + folder.name()).exit_code == 2);
}
