#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::testing::process_result;
using troupe::testing::temp_folder;

namespace {

/// Runs `troupe bench ARGUMENTS`, words with blanks between.
process_result bench(const std::string& arguments) {
  troupe::testing::run_options options;
  options.command = {TROUPE_PROGRAM, "bench"};
  std::istringstream words(arguments);
  for (std::string word; words >> word;) options.command.push_back(word);
  options.deadline = std::chrono::seconds(500);
  return troupe::testing::run_process(options);
}

/// Every line must be an object.
std::vector<nlohmann::json> objects_of(const process_result& seen) {
  INFO(seen.errors);
  REQUIRE(seen.exit_code == 0);
  std::vector<nlohmann::json> found;
  std::istringstream lines(seen.output);
  for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line));
  return found;
}

void check_is_spread(const nlohmann::json& value, std::size_t count) {
  INFO(value.dump());
  CHECK(value.at("n") == count);
  CHECK(value.at("min") <= value.at("median"));
  CHECK(value.at("median") <= value.at("max"));
}

void check_refused(const std::string& arguments, const std::string& part) {
  CAPTURE(arguments);
  auto seen = bench(arguments);
  CHECK(seen.exit_code == 2);
  CHECK(seen.output.empty());
  CHECK_THAT(seen.errors, ContainsSubstring(part));
}

/// Waits until the process has started so many others, at most a minute.
void wait_for_children(pid_t of, std::ptrdiff_t count) {
  auto file = "/proc/" + std::to_string(of) + "/task/" + std::to_string(of) + "/children";
  for (int tries = 0; tries < 6000; ++tries, std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
    std::ifstream stream(file);
    if (std::distance(std::istream_iterator<pid_t>(stream), {}) >= count) return;
  }
  FAIL("the processes did not start: " << file);
}

}  // namespace

TEST_CASE("a bench whose job is asked to stop ends as by that signal, and says so") {
  troupe::testing::background_process bench(
      {.command = {TROUPE_PROGRAM, "bench", "ddp", "--models", "mlp", "--ranks", "2", "--rounds", "1000"},
       .environment = {},
       .without = {}});
  wait_for_children(bench.pid(), 3);  // two processes, and the guard against orphans
  bench.signal(SIGTERM);
  auto result = bench.wait();
  CAPTURE(result.errors);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.errors, ContainsSubstring("troupe: SIGTERM stopped the measured job"));
}

TEST_CASE("bench recovery kills as often as asked and ends with the undisturbed run's weights") {
  auto lines =
      objects_of(bench("recovery --kills 3 --nproc 2 --steps-between 3 6 --snapshot-every 2 --json"));
  REQUIRE(lines.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(lines[i].at("event") == "kill");
    CHECK(lines[i].at("rank") == i % 2);
    CHECK(lines[i].at("cause").get<std::string>().starts_with("killed by SIGKILL"));
    for (const char* phase :
         {"detect_s", "fence_s", "quiesce_s", "respawn_s", "restore_s", "rebuild_s", "replay_s"})
      CHECK(lines[i].at(phase) <= lines[i].at("total_s"));
  }
  const auto& summary = lines.back();
  CHECK(summary.at("event") == "summary");
  CHECK(summary.at("kills") == 3);
  CHECK(summary.at("processes_started") == 5);
  CHECK(summary.at("weights_equal") == true);
  CHECK(summary.at("weights_sha256").get<std::string>().size() == 64);
  CHECK(summary.at("snapshot_every") == 2);
  CHECK(summary.at("torchrun_s").is_null());
  CHECK(summary.at("machine").at("cores") >= 1);
  check_is_spread(summary.at("total_s"), 3);
  check_is_spread(summary.at("steps_rolled_back"), 3);
}

TEST_CASE("bench recovery with replicas kills their processes, and ends with the undisturbed run's weights") {
  auto lines = objects_of(
      bench("recovery --kills 2 --nproc 2 --replicas 2 --steps-between 3 6 --snapshot-every 2 --json"));
  REQUIRE(lines.size() == 3);
  CHECK(lines.back().at("kills") == 2);
  CHECK(lines.back().at("replicas") == 2);
  CHECK(lines.back().at("weights_equal") == true);
}

TEST_CASE("bench recovery with groups gives each kill its own run, and measures threads and memory") {
  auto lines = objects_of(
      bench("recovery --kills 2 --nproc 2 --groups 5 --steps-between 3 6 --snapshot-every 2 --json"));
  REQUIRE(lines.size() == 3);
  const auto& summary = lines.back();
  CHECK(summary.at("kills") == 2);
  CHECK(summary.at("weights_equal") == true);
  CHECK(summary.at("groups") == 5);
  check_is_spread(summary.at("groups_made_s"), 2);
  check_is_spread(summary.at("groups_bytes_per_group"), 2);
  CHECK(summary.at("groups_threads").at("median") > 3);
}

TEST_CASE("bench recovery prints a table that says what was not measured") {
  auto seen = bench("recovery --kills 1 --nproc 2 --ranks 1 --steps-between 3 3");
  INFO(seen.errors);
  CHECK(seen.exit_code == 0);
  for (const char* part : {"respawn_s", "total_s", "weights_equal", "no peer was measured", "snapshot_every"})
    CHECK_THAT(seen.output, ContainsSubstring(part));
}

TEST_CASE("bench recovery counts a peer that measured nothing, and keeps its own figures") {
  auto lines =
      objects_of(bench("recovery --kills 1 --nproc 2 --steps-between 3 3 --torchrun /tmp --torchrun-script "
                       "none --torchrun-runs 1 --json"));
  REQUIRE(lines.size() == 2);
  CHECK(lines.back().at("torchrun_s").is_null());
  CHECK(lines.back().at("torchrun_failed") == 1);
  CHECK(lines.back().at("kills") == 1);
}

TEST_CASE("bench recovery refuses options that cannot be used") {
  check_refused("recovery --kills 0", "--kills");
  check_refused("recovery --replicas 0", "--replicas");
  check_refused("recovery --ranks 4", "'4' is no rank");
  check_refused("recovery --ranks 1,x", "--ranks");
  check_refused("recovery --steps-between 9 3", "--steps-between");
  check_refused("recovery --fashion-mnist --program /bin/true", "exclude each other");
  check_refused("recovery --fashion-mnist --groups 2", "--groups");
  check_refused("recovery --program /nowhere/train", "/nowhere/train");
  check_refused("recovery --schedule sideways",
                "--schedule: unknown schedule 'sideways'. Choose one of gpipe");
  check_refused("recovery --torchrun /nowhere", "/nowhere");
  check_refused("compute --seconds 0", "--seconds: expected a number from 0.001 to 3600, got '0'");
  check_refused("ddp --seconds -1", "--seconds: expected a number from 0.001 to 3600, got '-1'");
  check_refused("compression --data /nowhere", "/nowhere");
  check_refused("recovery --torchrun /", "--torchrun-script");
}

TEST_CASE("bench recovery fails for a program that prints no hash") {
  auto seen = bench("recovery --kills 1 --nproc 2 --program /bin/echo --json");
  CHECK(seen.exit_code == 1);
  CHECK(seen.output.empty());
  CHECK_THAT(seen.errors, ContainsSubstring("printed no"));
}

TEST_CASE("bench pipeline holds every schedule to its simulation and saves as many activations") {
  auto lines = objects_of(bench(
      "pipeline --devices 3 --microbatches 6 --forward-ms 1 --input-gradient-ms 1 --weight-gradient-ms 1 "
      "--steps 3 --json"));
  std::map<std::string, nlohmann::json> by_schedule;
  for (const auto& line : lines) by_schedule[line.at("schedule")] = line;
  REQUIRE(by_schedule.size() == lines.size());
  CHECK(by_schedule.at("gpipe").at("peak_activations") == std::vector{6, 6, 6});
  CHECK(by_schedule.at("1f1b").at("peak_activations") == std::vector{3, 2, 1});
  CHECK(by_schedule.at("zb_h1").at("peak_activations").at(0) == 3);
  CHECK(by_schedule.at("1f1b").at("formula_idle_ms") == 6.0);  // (p - 1)(f + b + w)
  CHECK(by_schedule.at("1f1b").at("simulated_idle_ms") ==
        4.0);  // (p - 1)(f + b): W does not delay the stage before
  CHECK(by_schedule.at("zb_h1").at("formula_idle_ms") == 2.0);  // (p - 1)(f + b - w)
  CHECK(by_schedule.at("interleaved_1f1b").at("stages") == 6);
  CHECK(by_schedule.at("zb_v").at("stages") == 6);
  for (const auto& line : lines) {
    INFO(line);
    CHECK(line.at("peak_equal") == true);
    CHECK(line.at("nominal_work_ms") == 18.0);
    check_is_spread(line.at("idle_ms"), 3);
    CHECK(line.at("excess_percent_of_step").at("median").is_number());
    CHECK(line.at("overslept_us_per_action").at("median").is_number());
  }
}

TEST_CASE("bench placement predicts and measures steps of two placements") {
  auto lines =
      objects_of(bench("placement --models mlp --batch 8 --microbatches 2 --steps 2 --rounds 1 --json"));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("model") == "mlp");
  for (const auto* field : {"predicted_ms", "predicted_equal_count_ms", "step_ms", "equal_count_ms",
                            "error_percent", "faster_percent"})
    CHECK(lines[0].at(field).at("n") == 1);
  CHECK(lines[0].at("predicted_ms").at("median") > 0);
}

TEST_CASE("bench placement refuses options that cannot be used") {
  check_refused("placement --models resnet", "expected mlp, cnn or gpt");
  check_refused("placement --devices 0", "--devices");
  check_refused("placement --models mlp --batch 32 --devices 30", "30 devices for 7 layers with parameters");
  check_refused("placement --models mlp --batch 30 --microbatches 7", "7 microbatches do not divide");
}

TEST_CASE("bench pipeline draws a schedule as planned and as measured") {
  auto seen = bench("pipeline --devices 2 --microbatches 2 --steps 1 --schedule zb_h1,1f1b --draw");
  CHECK(seen.exit_code == 0);
  for (const char* title : {"planned: zb_h1", "measured: zb_h1", "planned: 1f1b", "measured: 1f1b"})
    CHECK_THAT(seen.output, ContainsSubstring(title));
}

TEST_CASE("bench pipeline compares steps that compute with a simulation that has their times") {
  auto lines = objects_of(bench("pipeline --model mlp --steps 2 --rounds 1 --schedule 1f1b,zb_v --json"));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("peak_activations") == std::vector{2, 1});
  for (const auto& line : lines) {
    INFO(line);
    CHECK(line.at("model") == "mlp");
    CHECK(line.at("peak_equal") == true);
    check_is_spread(line.at("simulated_ms"), 2);
    // Each action begins in the simulation as soon as it can.
    CHECK(line.at("excess_percent_of_step").at("min") > -0.01);
  }
}

TEST_CASE("bench pipeline refuses options that cannot be used") {
  check_refused("pipeline --devices 0", "--devices");
  check_refused("pipeline --schedule sideways", "sideways");
  check_refused("pipeline --schedule forward_only", "forward_only");
  check_refused("pipeline --model sideways", "--model");
  check_refused("pipeline --model gpt --forward-ms 3", "--model excludes --forward-ms");
  check_refused("pipeline --model mlp --schedule gpipe --microbatches 5",
                "does not divide the batch of 256 samples");
  check_refused("pipeline --model mlp --schedule gpipe --devices 16", "16 stages");
  check_refused("pipeline --schedule zb_v --microbatches 1 --devices 4 --draw --json", "--draw and --json");
}

TEST_CASE("bench overlap holds the exposed part of communication to the simulation") {
  auto lines =
      objects_of(bench("overlap --schedule 1f1b --devices 1 --microbatches 2 --action-ms 1 --transfers 0.5,2 "
                       "--steps 3 --rounds 2 "
                       "--json"));
  REQUIRE(lines.size() == 2);
  for (const auto& line : lines) {
    INFO(line);
    CHECK(line.at("schedule") == "1f1b");
    CHECK(line.at("simulated_step_ms") == 6.0);  // 2 (f + b + w)
    check_is_spread(line.at("exposed_over_simulated"), 2);
    CHECK(line.at("step_over_simulated").at("min") > 0.5);
  }
  // 4 buckets of 0.75 ms or 3 ms each, the first complete a quarter of the last W before its end.
  CHECK(lines[0].at("simulated_exposed_ms") == 2.25);
  CHECK(lines[1].at("simulated_exposed_ms") == 11.25);
  CHECK(lines[1].at("exposed_ms").at("max") > 0);
}

TEST_CASE("bench overlap refuses options that cannot be used") {
  check_refused("overlap --replicas 1", "--replicas");
  check_refused("overlap --schedule sideways", "sideways");
  check_refused("overlap --schedule forward_only", "no gradients to add up");
  check_refused("overlap --schedule interleaved_1f1b --microbatches 3", "has to divide their number");
}

TEST_CASE(
    "bench compute holds a step to the rates of products, multiply-adds and copies that it measured beside "
    "it") {
  auto lines =
      objects_of(bench("compute --model mlp --batch 16 --threads 1 --rounds 2 --seconds 0.05 --json"));
  REQUIRE(lines.size() == 1);
  for (const char* measured : {"samples_per_s", "of_fma_rate", "fma_gflops_per_s", "of_product_rate",
                               "product_gflops_per_s", "of_copy_rate", "copy_gb_per_s"}) {
    check_is_spread(lines[0].at(measured), 2);
    CHECK(lines[0].at(measured).at("min") > 0);
  }
  CHECK(lines[0].at("bench") == "compute");
  CHECK(lines[0].at("machine").at("cores") >= 1);
  CHECK(lines[0].at("queueing") == "direct");
  CHECK_FALSE(lines[0].at("numeric_class").get<std::string>().empty());
}

TEST_CASE("bench compute says how much longer a step takes beside busy loops") {
  auto lines =
      objects_of(bench("compute --model loop --busy-loops 2 --threads 1,2 --rounds 1 --seconds 0.05 --json"));
  REQUIRE(lines.size() == 2);
  for (const auto& line : lines) {
    check_is_spread(line.at("slowdown"), 1);
    CHECK(line.at("slowdown").at("min") > 0);
    CHECK(line.at("busy_loops") == 2);
  }
  check_refused("compute --model loop --torch /", "loop");
}

TEST_CASE(
    "bench inspector times a job without and with events, one that is watched, and answers about many "
    "actors") {
  auto lines = objects_of(bench("inspector --pairs 1 --steps 8 --batch 8 --stages 12 --window 1.5 --json"));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].at("event") == "cost");
  CHECK(lines[0].at("weights_equal") == true);
  for (const char* measured : {"step_ms", "events_percent", "watched_percent"})
    check_is_spread(lines[0].at(measured), 1);
  CHECK(lines[0].at("events_percent_interval").is_null());  // of one pair there is none
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(lines[i].at("event") == "answers");
    CHECK(lines[i].at("is_paused") == (i == 2));
    CHECK(lines[i].at("actors") >= 24);
    CHECK(lines[i].at("answer_ms").at("n") >= 9);
    CHECK(lines[i].at("answer_ms").at("min") > 0);
    CHECK(lines[i].at("bytes_per_s") > 0);
  }
  check_refused("inspector --steps 3", "--steps");
}

TEST_CASE("bench compute and bench kernels refuse TF32 on the CPU") {
  check_refused("compute --dtype tf32", "only GPUs compute in TF32");
  check_refused("kernels --dtype tf32", "only GPUs compute in TF32");
  check_refused("compute --dtype f64", "--dtype");
}

TEST_CASE("bench products holds each product to multiply-adds of registers, and sums up") {
  temp_folder folder;
  auto shapes = folder.path() / "shapes.txt";
  std::ofstream(shapes) << "# two\nsmall 16 24 32 NT\nfew 1 64 64 TN\n";
  auto lines = objects_of(bench("products --rounds 2 --json --shapes " + shapes.string()));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].at("product") == "small");
  CHECK(lines[0].at("stored") == "NT");
  for (const char* measured : {"of_fma_rate", "gflops_per_s", "fma_gflops_per_s", "b_gb_per_s"}) {
    check_is_spread(lines[1].at(measured), 2);
    CHECK(lines[1].at(measured).at("min") > 0);
  }
  CHECK(lines[2].at("of") == "of_fma_rate");
  CHECK(lines[2].at("least") <= lines[2].at("geometric_mean"));
}

TEST_CASE("bench products names a line that is no product, and a file that is no library") {
  temp_folder folder;
  auto shapes = folder.path() / "shapes.txt";
  std::ofstream(shapes) << "small 16 24 32 NT\nsmall 16 0 32 NT\n";
  check_refused("products --shapes " + shapes.string(), "shapes.txt:2: expected a name, rows, columns");
  std::ofstream(shapes) << "# none\n";
  check_refused("products --shapes " + shapes.string(), "at least one shape");
  check_refused("products --shapes " + (folder.path() / "absent").string(),
                "tools/bench/products/shapes.txt");
  std::ofstream(shapes) << "small 16 24 32 NT\n";
  for (std::string library : {"openblas", "openblas=/absent.so", "libc=libc.so.6"})
    check_refused("products --shapes " + shapes.string() + " --library " + library, "--library " + library);
}

TEST_CASE("bench kernels prints the rates of its floors, then the kernels that were chosen") {
  auto lines = objects_of(bench("kernels --only relu --rounds 1 --json"));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].at("event") == "rates");
  CHECK(lines[0].at("copy_gb_per_s") > 0);
  CHECK(lines[1].at("kernel") == "relu");
  CHECK(lines[2].at("kernel") == "relu gradient");
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(lines[i].at("event") == "kernel");
    CHECK(lines[i].at("us") > 0);
    CHECK(lines[i].at("floor_us") > 0);
  }
}

TEST_CASE("bench ddp times steps of several processes, alone and over a slow link") {
  auto arguments = "ddp --model cnn --batch 2 --ranks 2 --rounds 2 --seconds 0.05 --links 0.5";
  auto lines = objects_of(bench(std::string(arguments) + " --json"));
  REQUIRE(lines.size() == 1);
  for (const char* measured : {"samples_per_s", "step_s", "compute_s", "waiting_step_over_compute"}) {
    check_is_spread(lines[0].at(measured), 2);
    CHECK(lines[0].at(measured).at("min") > 0);
  }
  REQUIRE(lines[0].at("links").size() == 1);
  CHECK(lines[0].at("links")[0].at("communication_over_compute") == 0.5);
  check_is_spread(lines[0].at("links")[0].at("step_over_larger"), 2);
  auto table = bench(arguments);
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.output, ContainsSubstring("machine    ") && ContainsSubstring("step_over_compute") &&
                               ContainsSubstring("no peer was measured"));
}

TEST_CASE("bench ddp --replicas times a pipeline's replicas beside, also of a model that is no chain") {
  auto lines =
      objects_of(bench("ddp --model gpt --batch 1 --ranks 2 --rounds 1 --seconds 0.05 --replicas --json"));
  REQUIRE(lines.size() == 1);
  for (const char* measured : {"replicas_step_s", "replicas_over_ddp", "processor_s", "replicas_processor_s",
                               "replicas_over_ddp_by_processor"}) {
    INFO(measured);
    check_is_spread(lines[0].at(measured), 1);
    CHECK(lines[0].at(measured).at("min") > 0);
  }
}

TEST_CASE("bench ddp times replicas that own shards, of several stages on one device") {
  auto lines =
      objects_of(bench("ddp --model mlp --batch 4 --ranks 2 --rounds 1 --seconds 0.05 --replicas --shard "
                       "full --stages 3 --json"));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("shard") == "full");
  CHECK(lines[0].at("stages") == 3);
  check_is_spread(lines[0].at("replicas_over_ddp"), 1);
  check_refused("ddp --shard full", "--replicas");
  check_refused("ddp --replicas --shard most", "most");
}

TEST_CASE("bench ddp --named-calls gives a pipeline's bits over its communicator, and times it beside") {
  auto arguments =
      "ddp --model cnn --batch 1 --ranks 2 --rounds 1 --seconds 0.05 --replicas --named-calls --links 0.5";
  auto lines = objects_of(bench(std::string(arguments) + " --json"));
  REQUIRE(lines.size() == 1);
  const auto& link = lines[0].at("links")[0];
  check_is_spread(link.at("replicas_step_over_larger"), 1);
  check_is_spread(link.at("named_over_replicas"), 1);
  for (const char* measured :
       {"named_step_s", "named_processor_s", "named_over_replicas", "named_over_replicas_by_processor"}) {
    INFO(measured);
    check_is_spread(lines[0].at(measured), 1);
    CHECK(lines[0].at(measured).at("min") > 0);
  }
  CHECK_THAT(bench(arguments).output,
             ContainsSubstring("replicas_over_ddp_by_processor") && ContainsSubstring("named_over_replicas"));
  check_refused("ddp --named-calls", "--named-calls");
}

TEST_CASE("bench actor times tensors between two actors, in streams, and from stage to stage") {
  auto lines = objects_of(bench("actor --ranks 3 --microbatches 4 --steps 4 --rounds 2 --bytes 8,1M --json"));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("bytes") == 8);
  CHECK(lines[1].at("bytes") == 1048576);
  for (const auto& line : lines) {
    CHECK(line.at("ranks") == 3);
    for (const char* what : {"polling_us", "sleeping_us", "stream_GBps"}) {
      check_is_spread(line.at(what), 2);
      CHECK(line.at(what).at("min") > 0);
    }
    CHECK(line.at("single_critical_hops") == 4.0);
    CHECK(line.at("critical_hops") >= 4.0);
    check_is_spread(line.at("hop_us"), 4);
    check_is_spread(line.at("single_hop_us"), 4);
    CHECK(line.at("hop_us").at("min") > 0);
  }
}

TEST_CASE("bench actor refuses options that cannot be used") {
  check_refused("actor --ranks 1", "--ranks");
  check_refused("actor --bytes 0", "--bytes");
  check_refused("actor --bytes 8:4", "ends with its larger size");
  check_refused("actor --schedule forward_only", "forward_only");
}

TEST_CASE("bench compression times every hook over a slow link") {
  auto lines = objects_of(
      bench("compression --ranks 2 --model cnn --batch 2 --steps 2 --rounds 2 --link-mbit 2000 --json"));
  REQUIRE(lines.size() == 4);
  const char* hooks[] = {"none", "bf16", "topk", "powersgd"};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(lines[i].at("hook") == hooks[i]);
    CHECK(lines[i].at("gradient_mib") > 1);
    check_is_spread(lines[i].at("link_step_s"), 2);
    check_is_spread(lines[i].at("memory_step_s"), 2);
    check_is_spread(lines[i].at("rate_over_plain"), 2);
    CHECK(lines[i].at("rate_over_plain").at("min") > 0);
  }
  // What the link needs for the gradients is the least that a step takes.
  CHECK(lines[0].at("link_step_s").at("min") >=
        lines[0].at("gradient_mib").get<double>() * 8 * 1.048576 / 2000);
}

TEST_CASE("bench compression refuses options that cannot be used") {
  check_refused("compression --hooks topk", "none first");
  check_refused("compression --hooks none,zip", "zip");
  check_refused("compression --link-mbit 0", "--link-mbit");
  check_refused("compression --ranks 0", "--ranks");
}

TEST_CASE("a measured process refuses to run on its own") { check_refused("worker probe", "troupe launch"); }

TEST_CASE(
    "bench of a collective operation measures every size beside memcpy, tensors from elsewhere and peers") {
  for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter", "p2p"}) {
    auto lines =
        objects_of(bench(std::string(operation) + " --ranks 2 --bytes 8,64K --rounds 1 --repeats 3 --json"));
    REQUIRE(lines.size() == 2);
    for (const auto& line : lines) {
      CHECK(line.at("bench") == operation);
      for (const char* measured : {"own_us", "foreign_us", "own_over_memcpy", "foreign_over_memcpy"})
        check_is_spread(line.at(measured), 3);
      check_is_spread(line.at("memcpy_us"),
                      3 * (1 + line.at("no_gloo").is_null() + line.at("no_open_mpi").is_null()));
      CHECK(line.at("bus_GBps") > 0);
      CHECK(line.at("fresh") == false);
      for (const auto& peer : {std::string("gloo"), std::string("open_mpi")}) {
        CHECK(line.at(peer + "_us").is_null() == line.at("no_" + peer).is_string());
        if (!line.at(peer + "_us").is_null()) check_is_spread(line.at(peer + "_us"), 3);
      }
    }
    CHECK(lines[0].at("bytes") == 8);
    CHECK(lines[1].at("bytes") == 65536);
  }
}

TEST_CASE("bench of threads needs no processes") {
  auto lines =
      objects_of(bench("all_reduce --backend local --ranks 3 --bytes 8 --rounds 1 --repeats 2 --json"));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("backend") == "local");
}

TEST_CASE(
    "bench has tensors rewritten before each call, over any backend that is there, and says what is not") {
  for (const std::string backend : {"ucx", "gloo", "mpi"}) {
    auto seen =
        bench("all_reduce --fresh --ranks 2 --bytes 4K --rounds 2 --repeats 1 --json --backend " + backend);
    if (backend != "ucx" && seen.exit_code == 2) {
      CHECK_THAT(seen.errors, ContainsSubstring("libgloo-dev") || ContainsSubstring("libopenmpi-dev") ||
                                  ContainsSubstring("openmpi-bin"));
      continue;
    }
    auto line = objects_of(seen).at(0);
    CHECK(line.at("fresh") == true);
    CHECK(line.at("backend") == backend);
    check_is_spread(line.at("own_us"), 2);
  }
  auto table = bench("reduce_scatter --ranks 2 --bytes 8 --rounds 1 --repeats 1 --backend local");
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.output, ContainsSubstring("Gloo       not measured"));
}

TEST_CASE("bench of a collective operation refuses backends that are none") {
  check_refused("all_reduce --backend smoke", "smoke");
}

TEST_CASE("bench of a collective operation refuses sizes that are none") {
  check_refused("all_reduce --bytes 8:", "--bytes");
  check_refused("all_reduce --bytes 0", "expected 1 to 1G");
  check_refused("all_reduce --bytes 5T", "expected 1 to 1G");
  check_refused("p2p --ranks 3", "--ranks 2");
}
