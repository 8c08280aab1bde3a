#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <limits>
#include <string>

#include "troupe/config/job_options.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::job_options;

namespace {

/// What check_options says about the defaults with one change; empty if nothing.
template <class Change>
std::string complaint(Change change) {
  job_options options;
  change(options);
  try {
    troupe::check_options(options);
  } catch (const troupe::bad_input& problem) {
    return problem.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the defaults can train") {
  CHECK(complaint([](job_options&) {}).empty());
}

TEST_CASE("microbatches that do not divide the batch come with numbers that do") {
  CHECK_THAT(complaint([](job_options& o) { o.batch = 250; }),
             ContainsSubstring("--batch 248 or 256") && ContainsSubstring("--microbatches 5"));
  CHECK_THAT(complaint([](job_options& o) { o.batch = 3; }),
             ContainsSubstring("--batch 8,") && ContainsSubstring("--microbatches 3"));
}

TEST_CASE("commands need an inspector, and their log needs commands") {
  CHECK_THAT(complaint([](job_options& o) { o.inspect_control = true; }), ContainsSubstring("add --inspect"));
  CHECK(complaint([](job_options& o) { o.inspect = "8080", o.inspect_control = true; }).empty());
  CHECK_THAT(complaint([](job_options& o) { o.inspect = "8080", o.inspect_audit_log = "f"; }),
             ContainsSubstring("add --inspect-control"));
}

TEST_CASE("devices need stages") {
  CHECK_THAT(complaint([](job_options& o) { o.devices = 4, o.stages = 2; }),
             ContainsSubstring("--devices 2") && ContainsSubstring("--stages 4"));
  CHECK(complaint([](job_options& o) { o.devices = 4; }).empty());
}

TEST_CASE("numbers out of range name their option") {
  CHECK_THAT(complaint([](job_options& o) { o.epochs = 0; }), ContainsSubstring("--epochs"));
  CHECK_THAT(complaint([](job_options& o) { o.batch = 0; }), ContainsSubstring("--batch"));
  CHECK_THAT(complaint([](job_options& o) { o.microbatches = -1; }), ContainsSubstring("--microbatches"));
  CHECK_THAT(complaint([](job_options& o) { o.stages = -1; }), ContainsSubstring("--stages"));
  CHECK_THAT(complaint([](job_options& o) { o.devices = 0; }), ContainsSubstring("--devices"));
  CHECK_THAT(complaint([](job_options& o) { o.threads = 5000; }), ContainsSubstring("--threads"));
  CHECK_THAT(complaint([](job_options& o) { o.learning_rate = 0; }), ContainsSubstring("--learning-rate"));
  CHECK_THAT(complaint([](job_options& o) { o.learning_rate = std::numeric_limits<double>::quiet_NaN(); }),
             ContainsSubstring("--learning-rate"));
  CHECK_THAT(complaint([](job_options& o) { o.clip_grad_norm = -1; }), ContainsSubstring("--clip-grad-norm"));
  for (double fraction : {-0.5, 1.5})
    CHECK_THAT(complaint([fraction](job_options& o) {
                 o.replicas = 2;
                 o.top_k_gradients = fraction;
               }),
               ContainsSubstring("--top-k-gradients must be a number from 0 to 1") &&
                   ContainsSubstring(fraction < 0 ? ", got -0.5" : ", got 1.5"));
  CHECK_THAT(complaint([](job_options& o) { o.top_k_gradients = 0.5; }),
             ContainsSubstring("--top-k-gradients 0.5") && ContainsSubstring("--replicas 2"));
  CHECK_THAT(complaint([](job_options& o) { o.gradient_sync = troupe::dtype::bf16; }),
             ContainsSubstring("--gradient-sync bf16") && ContainsSubstring("--replicas 2"));
  for (auto option : {&job_options::power_sgd_rank, &job_options::average_every}) {
    auto name = option == &job_options::power_sgd_rank ? "--power-sgd-rank" : "--average-every";
    CHECK_THAT(complaint([option](job_options& o) {
                 o.replicas = 2;
                 o.*option = -1;
               }),
               ContainsSubstring(name) && ContainsSubstring("between 0"));
    CHECK_THAT(complaint([option](job_options& o) { o.*option = 4; }),
               ContainsSubstring(std::string(name) + " 4") && ContainsSubstring("--replicas 2"));
  }
  CHECK_THAT(complaint([](job_options& o) {
               o.replicas = 2;
               o.steps = 10;
               o.average_every = 4;
             }),
             ContainsSubstring("10 steps are no multiple of --average-every 4") &&
                 ContainsSubstring("--steps 8 or 12"));
  CHECK_THAT(complaint([](job_options& o) { o.loss_scale = 0; }), ContainsSubstring("--loss-scale"));
  CHECK_THAT(complaint([](job_options& o) { o.snapshot_interval = std::chrono::seconds(-1); }),
             ContainsSubstring("--snapshot-interval"));
  CHECK_THAT(complaint([](job_options& o) { o.join_timeout = {}; }), ContainsSubstring("--join-timeout"));
  CHECK_THAT(complaint([](job_options& o) { o.suspect_after = {}; }), ContainsSubstring("--suspect-after"));
}

TEST_CASE("numbers that f32 cannot hold are refused as a loss scale") {
  for (double scale : {1e39, 1e300, 1e-300, -1.0})
    CHECK_THAT(
        complaint([scale](job_options& o) { o.loss_scale = scale, o.precision = troupe::dtype::f16; }),
        ContainsSubstring("--loss-scale must be a number from 1.2e-38 to 3.4e38, for example 65536, got "));
  CHECK_THAT(complaint([](job_options& o) { o.loss_scale = 1e39; }), ContainsSubstring("got 1e+39"));
  CHECK_THAT(complaint([](job_options& o) { o.learning_rate = -0.5; }), ContainsSubstring(", got -0.5"));
  CHECK_THAT(complaint([](job_options& o) { o.clip_grad_norm = -1; }), ContainsSubstring(", got -1"));
}

TEST_CASE("what replicas may divide, and when they gather it") {
  auto with = [](std::function<void(job_options&)> change) {
    return complaint([&change](job_options& o) {
      o.replicas = 2;
      o.shard = "full";
      change(o);
    });
  };
  CHECK_THAT(with([](job_options& o) { o.shard = "all"; }),
             ContainsSubstring("--shard") && ContainsSubstring("full") && ContainsSubstring("all"));
  CHECK_THAT(with([](job_options& o) { o.reshard_after = "never"; }),
             ContainsSubstring("--reshard-after") && ContainsSubstring("step") && ContainsSubstring("never"));
  for (int ahead : {-1, 65})
    CHECK_THAT(with([ahead](job_options& o) { o.gather_ahead = ahead; }),
               ContainsSubstring("--gather-ahead must be from 0 to 64 passes, got " + std::to_string(ahead)));
  for (const auto* name : {"reshard_after", "gather_ahead"})
    CHECK_THAT(with([name](job_options& o) {
                 o.shard = "grad";
                 o.given = {name};
               }),
               ContainsSubstring(name[0] == 'r' ? "--reshard-after" : "--gather-ahead") &&
                   ContainsSubstring("--shard full: add that, or leave it out"));
}

TEST_CASE("options that change nothing are refused with the one that they are about") {
  auto given = [](const char* name) { return complaint([name](job_options& o) { o.given = {name}; }); };
  CHECK_THAT(given("loss_scale"), ContainsSubstring("--loss-scale 65536 is about f16") &&
                                      ContainsSubstring("--precision is f32: add --precision f16"));
  CHECK_THAT(given("snapshot_access"),
             ContainsSubstring("--snapshot-access") && ContainsSubstring("add --snapshot-dir"));
  CHECK_THAT(given("snapshot_interval"), ContainsSubstring("add --snapshot-dir"));
  for (std::string point : {"part_half_written", "before_manifest", "read_part"}) {
    auto fault = "forward@rank=0;" + point + ":fail@rank=0";
    CHECK_THAT(complaint([&](job_options& o) { o.fault = fault; }),
               ContainsSubstring("--fault " + point) && ContainsSubstring("add --snapshot-dir"));
    CHECK(complaint([&](job_options& o) { o.fault = fault, o.snapshot_dir = "runs"; }).empty());
  }
  CHECK(complaint([](job_options& o) {
          o.given = {"loss_scale", "snapshot_access", "snapshot_interval"};
          o.precision = troupe::dtype::f16;
          o.snapshot_dir = "runs";
        }).empty());
}

TEST_CASE("steps that do not end at a flush are refused with those that do") {
  auto flushing = [](std::uint64_t steps, int flush_every) {
    return complaint([=](job_options& o) {
      o.schedule = troupe::schedule_kind::pipedream_2bw;
      o.steps = steps;
      o.flush_every = flush_every;
    });
  };
  CHECK_THAT(flushing(12, 5), ContainsSubstring("12 steps are no multiple of --flush-every 5") &&
                                  ContainsSubstring("use --steps 10 or 15"));
  CHECK_THAT(flushing(3, 4), ContainsSubstring("use --steps 4"));
  CHECK_THAT(flushing(3, 0), ContainsSubstring("--flush-every must lie between 1 and"));
  CHECK_THAT(complaint([](job_options& o) { o.flush_every = 2; }),
             ContainsSubstring("--schedule 1f1b flushes after every step, not after 2") &&
                 ContainsSubstring("pipedream_2bw"));
}

TEST_CASE("unknown words are refused with the known ones") {
  CHECK_THAT(complaint([](job_options& o) { o.log_level = "loud"; }), ContainsSubstring("debug"));
  CHECK_THAT(complaint([](job_options& o) { o.fault = "nowhere@rank=0"; }),
             ContainsSubstring("before_manifest"));
  CHECK_THAT(complaint([](job_options& o) { o.schedule = troupe::schedule_kind::forward_only; }),
             ContainsSubstring("1f1b"));
  CHECK_THAT(complaint([](job_options& o) {
               o.plan = "plan.csv";
               o.given = {"plan", "schedule"};
             }),
             ContainsSubstring("--plan plan.csv") && ContainsSubstring("give one of them"));
  CHECK_THAT(complaint([](job_options& o) { o.given = {"plan"}; }),
             ContainsSubstring("--plan names no file"));
  CHECK_THAT(complaint([](job_options& o) { o.given = {"device_map"}; }),
             ContainsSubstring("--device-map names no file"));
  for (const auto* other : {"plan", "stages"})
    CHECK_THAT(
        complaint([other](job_options& o) {
          o.device_map = "map.yaml";
          o.plan = "plan.csv";
          o.given = {"device_map", other};
        }),
        ContainsSubstring("--device-map map.yaml") && ContainsSubstring("so does --" + std::string(other)));
  CHECK_THAT(complaint([](job_options& o) { o.network_interface.clear(); }),
             ContainsSubstring("--network-interface"));
  CHECK_THAT(complaint([](job_options& o) { o.data.clear(); }), ContainsSubstring("--data"));
}

TEST_CASE("options that need a snapshot folder are refused without one") {
  CHECK_THAT(complaint([](job_options& o) { o.resume = true; }), ContainsSubstring("--snapshot-dir"));
  CHECK_THAT(complaint([](job_options& o) { o.reset_optimizer = true, o.snapshot_dir = "runs"; }),
             ContainsSubstring("--resume"));
  CHECK_THAT(complaint([](job_options& o) { o.fresh_start = true; }), ContainsSubstring("--snapshot-dir"));
  CHECK_THAT(complaint([](job_options& o) { o.resume = o.fresh_start = true, o.snapshot_dir = "runs"; }),
             ContainsSubstring("choose one"));
  CHECK_THAT(complaint([](job_options& o) { o.snapshot_access = "everyone"; }),
             ContainsSubstring("owner, group, umask"));
  CHECK_THAT(complaint([](job_options& o) { o.on_lost_state = "wait"; }), ContainsSubstring("stop, restart"));
  CHECK_THAT(complaint([](job_options& o) { o.disk_every = 10; }), ContainsSubstring("--snapshot-dir"));
  CHECK(
      complaint([](job_options& o) { o.resume = true, o.disk_every = 10, o.snapshot_dir = "runs"; }).empty());
}
