#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"
#include "support/text_of.hpp"
#include "troupe/placement/cost_profile.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe::testing;

namespace {

/// Four layers: 1, 2, 3 and 6 seconds forward, as long for each gradient; 100 bytes of everything and 40
/// bytes between them. `act` has no parameters.
troupe::cost_profile some_profile() {
  troupe::cost_profile profile{.microbatch_samples = 8};
  for (const auto& [name, seconds] :
       {std::pair("embed", 1.0), std::pair("act", 2.0), std::pair("mid", 3.0), std::pair("head", 6.0)}) {
    auto layer = static_cast<int>(profile.layers.size());
    std::uint64_t bytes = layer == 1 ? 0 : 100;
    profile.layers.push_back({name, seconds, seconds, seconds, 0.5, bytes, bytes, 2 * bytes, bytes / 10, 50});
    if (layer > 0) profile.values.push_back({layer - 1, 0, layer, 40});
  }
  return profile;
}

/// Runs `troupe plan job.yaml --profile profile.json ARGUMENTS` in a folder with these files.
class plan_folder {
 public:
  plan_folder(const std::string& job, const std::string& profile = to_json(some_profile())) {
    write("job.yaml", job);
    write("profile.json", profile);
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
  }
  std::string read(const std::string& name) const { return text_of(folder_.path() / name); }

  process_result run(const std::string& arguments) const {
    return run_in_shell("cd " + folder_.path().string() + " && " + TROUPE_PROGRAM +
                        " plan job.yaml --profile profile.json " + arguments);
  }

 private:
  temp_folder folder_;
};

constexpr auto two_devices = "batch: 32\nmicrobatches: 4\ndevices: 2\nschedule: gpipe\n";

}  // namespace

TEST_CASE("a job without a map is placed automatically, and the map can be written for it") {
  plan_folder folder(two_devices);
  auto seen = folder.run("--json --write-map map.yaml");
  CHECK(seen.errors.empty());
  REQUIRE(seen.exit_code == 0);
  auto line = nlohmann::json::parse(seen.output);
  CHECK(line["devices"][0]["layers"] == "embed to mid");
  CHECK(line["devices"][1]["layers"] == "head");
  // 18 seconds a microbatch on each device. Device 1 begins at 6, its backwards at 30, and hands the first
  // gradient on at 36; then device 0 has four backwards, and the optimizer's steps of three layers.
  CHECK(line["step_s"] == 36 + 4 * 12 + 1.5);
  CHECK(line["devices"][0]["busy_s"] == 4 * 18 + 1.5);
  CHECK(folder.read("map.yaml") == "version: 1\nembed: 0\nact: 0\nmid: 0\nhead: 1\n");
  // The map that was written gives the same job.
  folder.write("job.yaml", two_devices + std::string("device_map: map.yaml\n"));
  CHECK(folder.run("--json").output == seen.output);
}

TEST_CASE("memory by category, and bytes of each link, are those of the whole step") {
  plan_folder folder(two_devices);
  auto line = nlohmann::json::parse(folder.run("--json").output);
  const auto& first = line["devices"][0];
  CHECK(first["parameter_bytes"] == 200);
  CHECK(first["gradient_bytes"] == 200);
  CHECK(first["optimizer_bytes"] == 400);
  CHECK(first["buffer_bytes"] == 20);
  // GPipe keeps all four microbatches, but for the value that goes to device 1, in a block of 64 bytes.
  CHECK(first["activation_bytes"] == 4 * (150 - 64));
  // Each gradient comes back before the next one, when all four are kept.
  CHECK(first["message_bytes"] == 64);
  CHECK(first["peak_bytes"] == 820 + 4 * (150 - 64) + 64);
  CHECK(line["links"].dump() == R"([{"bytes":160,"from":0,"to":1},{"bytes":160,"from":1,"to":0}])");
  folder.write("job.yaml", "batch: 32\nmicrobatches: 4\ndevices: 2\nschedule: 1f1b\n");
  line = nlohmann::json::parse(folder.run("--json").output);
  CHECK(line["devices"][0]["activation_bytes"] == 2 * (150 - 64));
  CHECK(line["devices"][1]["activation_bytes"] == 50 + 64);  // with what comes in
}

TEST_CASE("several stages on one device, transfers and devices of other speed count") {
  plan_folder folder("batch: 8\nmicrobatches: 1\ndevices: 2\nschedule: gpipe\ndevice_map: map.yaml\n");
  folder.write("map.yaml", "version: 1\nembed: 0\nact: 0\nmid: 1\nhead: 0\n");
  auto line = nlohmann::json::parse(folder.run("--json --speed 1,2 --bandwidth 10 --latency 1").output);
  CHECK(line["stages"] == 3);
  CHECK(line["devices"][0]["layers"] == "embed to act, head");
  CHECK(line["links"][0]["bytes"] == 80);  // values one way, gradients of others the same way
  // Forwards 3, 1.5 and 6, four transfers of 1 + 40/10; gradients hand on as soon as they are there; then
  // the weight gradients of the first stage and three optimizer steps on device 0.
  CHECK(line["step_s"].get<double>() == 3 + 5 + 1.5 + 5 + 6 + 6 + 5 + 1.5 + 5 + 3 + 3 + 1.5);
}

TEST_CASE("the table names devices, their layers and the links") {
  auto seen = plan_folder(two_devices).run("");
  CHECK(seen.exit_code == 0);
  for (const auto* part :
       {"gpipe: 2 stages on 2 devices, 4 microbatches of 8 samples", "predicted step 85500.000 ms",
        "activations", "embed to mid", "0 ->  1", "1 ->  0"})
    CHECK_THAT(seen.output, ContainsSubstring(part));
}

TEST_CASE("what cannot be planned is refused with what to do") {
  auto expect = [](const std::string& job, const std::string& arguments, auto... parts) {
    plan_folder folder(job);
    folder.write("map.yaml", "version: 1\nembed: 0\nact: 0\nmid: 0\nhead: 1\n");
    folder.write("three.yaml", "version: 1\nembed: 0\nact: 0\nmid: 1\nhead: 2\n");
    folder.write("empty_stage.yaml", "version: 1\nembed: 0\nact: 1\nmid: 0\nhead: 1\n");
    folder.write("two.yaml", "version: 1\nembed: 0\nact: 0\nmid: 0\n---\nhead: 1\n");
    folder.write("unknown.yaml", "version: 1\nembed: 0\nact: 0\nmid.0..2: 0\nhead: 1\n");
    auto seen = folder.run(arguments);
    CAPTURE(job, arguments);
    CHECK(seen.exit_code == 2);
    CHECK(seen.output.empty());
    CHECK_THAT(seen.errors, (ContainsSubstring("troupe: ") && ... && ContainsSubstring(parts)));
  };
  std::string job = two_devices;
  expect(job + "epoch: 2\n", "", "job.yaml:5", "'epoch'");
  expect("batch: 64\nmicrobatches: 4\n", "", "microbatches of 8 samples, but the job's have 16", "Measure");
  expect(job + "stages: 2\n", "", "2 stages. Name a device_map");
  expect("batch: 32\nmicrobatches: 4\nplan: p.csv\n", "", "troupe schedule --plan p.csv");
  expect("batch: 32\nmicrobatches: 4\ndevices: 2\nschedule: zb_v\n", "", "zb_v has more. Choose gpipe");
  expect("batch: 32\nmicrobatches: 4\ndevices: 2\nschedule: zb_v\ndevice_map: map.yaml\n", "",
         "map.yaml: zb_v places the stages itself", "Choose gpipe, 1f1b");
  expect(job, "--memory 1200",
         "placement that comes nearest, device 0 would hold 1.199 KiB, which is 28 B more than its memory",
         "28 B more for each device would do");
  CHECK(plan_folder(job).run("--memory 1228").exit_code == 0);
  expect(job + "device_map: map.yaml\n", "--memory 1200", "device 0 would hold 1.199 KiB, which is 28 B more",
         "28 B more for each device would do");
  expect(job + "device_map: map.yaml\n", "--memory 1K,2K", "device 0 would hold 1.199 KiB",
         "The automatic placement fits");
  expect(job + "device_map: three.yaml\n", "",
         "three.yaml: the device map names device 2, but the job has 2 devices", "more devices or processes");
  expect(job + "device_map: empty_stage.yaml\n", "", "empty_stage.yaml",
         "the stage from act to act would have no parameters");
  expect(job + "device_map: unknown.yaml\n", "", "unknown.yaml", "no layer 'mid.0'");
  expect(job, "--processes 0", "at least 1", ", got 0");
  expect(job, "--memory -1", "--memory: expected a whole number of bytes from 0 to 8T", "got '-1'");
  expect(job, "--memory=-1", "got '-1'");
  expect(job, "--memory 99999999999999999999", "got '99999999999999999999'");
  expect(job, "--memory 1.5M", "--memory: expected a whole number of bytes", "got '1.5M'");
  expect(job, "--memory=4M,", "--memory: expected a whole number of bytes", "got ''");
  expect(job, "--memory 4M,,4M", "got ''");
  expect(job, "--speed 1,", "--speed: expected a number", "got ''");
  expect(job, "--memory --json", "--memory needs a value, got the option --json");
  expect(job, "--write-map= --json", "--write-map needs a value after the '='");
  expect("batch: 32\n---\nbatch: 64\n", "", "job.yaml:3: expected one YAML document");
  expect(job + "device_map: two.yaml\n", "", "two.yaml:6: expected one YAML document");
  expect(job, "--processes 2", "4 devices for 3 layers");
  expect(job, "--speed 1,2,3", "--speed has 3 values for 2 devices");
  expect(job, "--speed 0", "expected a number from 0.000001 to 1000000", "got 0");
  expect(job, "--speed 1e-308", "got 1e-308");
  expect(job, "--bandwidth 0", "--bandwidth: expected a number from 1 on, got '0'");
  expect(job, "--bandwidth -1", "--bandwidth: expected a number from 1 on, got '-1'");
}

TEST_CASE("a memory of 0 is no limit") {
  plan_folder folder(two_devices);
  auto without = folder.run("--json");
  CHECK(folder.run("--memory 0 --json").output == without.output);
  CHECK(folder.run("--memory 0,2K").exit_code == 0);
}

TEST_CASE("options of the program itself in a job's file are left to it, with a note") {
  auto seen = plan_folder(two_devices + std::string("size: tiny\n")).run("--json");
  CHECK(seen.exit_code == 0);
  CHECK(seen.output == plan_folder(two_devices).run("--json").output);
  CHECK_THAT(seen.errors, ContainsSubstring("troupe: job.yaml:5: key 'size' is no option of every job"));
}

TEST_CASE("a file that is no profile is refused") {
  auto seen = plan_folder(two_devices, "{}").run("");
  CHECK(seen.exit_code == 2);
  CHECK_THAT(seen.errors, ContainsSubstring("profile.json: cost profile: expected a file"));
}

TEST_CASE(
    "of a job with replicas one is predicted, with the sums of gradients, on its share of the devices") {
  plan_folder folder("batch: 64\nmicrobatches: 4\nreplicas: 2\ndevices: 4\nschedule: gpipe\n");
  auto line = nlohmann::json::parse(folder.run("--json").output);
  CHECK(line["devices"].size() == 2);
  CHECK(line["step_s"] == 36 + 4 * 12 + 1.5);
  CHECK(line["replicas"] == 2);
  CHECK_THAT(folder.run("").output, ContainsSubstring("gpipe, each of 2 replicas: 2 stages on 2 devices"));
  CHECK_THAT(folder.run("--memory 8G,8G,8G,8G").errors,
             ContainsSubstring("--memory has 4 values for 2 devices of each replica"));
  folder.write("three.yaml", "version: 1\nembed: 0\nact: 0\nmid: 1\nhead: 2\n");
  folder.write("job.yaml", "batch: 64\nmicrobatches: 4\nreplicas: 2\ndevices: 4\ndevice_map: three.yaml\n");
  CHECK_THAT(folder.run("").errors, ContainsSubstring("but the job has 2 devices for each replica"));
  folder.write("job.yaml", "batch: 96\nmicrobatches: 4\nreplicas: 3\ndevices: 4\nschedule: gpipe\n");
  auto refused = folder.run("--json");
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.errors, Catch::Matchers::ContainsSubstring("3 replicas would share 4 devices unevenly"));
}
