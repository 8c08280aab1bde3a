#include <catch2/catch_test_macros.hpp>

#include "jobs/job.hpp"

using troupe::testing::example;
using troupe::testing::job_outcome;
using troupe::testing::run_launched;
using troupe::testing::run_local;

namespace {

std::vector<std::string> with(std::vector<std::string> more) {
  auto options = troupe::testing::small_job();
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

/// The losses of all steps, in order.
std::vector<double> losses(const job_outcome& outcome) {
  std::vector<double> all;
  for (const auto& event : outcome.named("step")) all.push_back(event["loss"]);
  return all;
}

}  // namespace

TEST_CASE(
    "weights and losses are the same bits on one device, four devices and four processes, with any schedule "
    "of a stage a device") {
  auto reference = run_local(with({"--devices", "1", "--stages", "4"}));
  REQUIRE(losses(reference).size() == 12);
  for (std::string schedule : {"gpipe", "1f1b", "zb_h1", "zb_h2"}) {
    INFO(schedule);
    auto devices = run_local(with({"--devices", "4", "--schedule", schedule}));
    CHECK(devices.weights_sha256() == reference.weights_sha256());
    CHECK(losses(devices) == losses(reference));
    auto processes = run_launched(4, with({"--schedule", schedule}));
    CHECK(processes.weights_sha256() == reference.weights_sha256());
    CHECK(losses(processes) == losses(reference));
  }
}

TEST_CASE("schedules of several stages a device give the same bits in one process and in two") {
  auto reference = run_local(with({"--devices", "1", "--stages", "4"}));
  for (std::string schedule : {"interleaved_1f1b", "zb_v", "dualpipe_v"}) {
    INFO(schedule);
    auto devices = run_local(with({"--devices", "2", "--schedule", schedule}));
    CHECK(devices.weights_sha256() == reference.weights_sha256());
    CHECK(losses(devices) == losses(reference));
    auto processes = run_launched(2, with({"--stages", "4", "--schedule", schedule}));
    CHECK(processes.weights_sha256() == reference.weights_sha256());
    CHECK(losses(processes) == losses(reference));
  }
}

TEST_CASE("the partition into stages does not change the bits") {
  auto whole = run_local(with({"--devices", "1", "--stages", "1"}));
  CHECK(run_local(with({"--devices", "2", "--stages", "3"})).weights_sha256() == whole.weights_sha256());
  CHECK(run_launched(2, with({"--devices", "2", "--stages", "4"})).weights_sha256() ==
        whole.weights_sha256());
}

TEST_CASE("another seed gives other bits") {
  CHECK(run_local(with({"--stages", "2", "--seed", "1"})).weights_sha256() !=
        run_local(with({"--stages", "2", "--seed", "2"})).weights_sha256());
}

// The README names the first. They change only where a version of Troupe computes in another order, and so
// has another numeric class.
TEST_CASE("the example programs have these weights on every machine, and with any number of threads") {
  for (auto threads : {"1", "2"}) {
    CHECK(run_local({"--steps", "30", "--threads", threads}).weights_sha256() ==
          "4b2a3ffca542ff74727a0d18b25d813b9d052e81f0995c40a14c2dea938a0b29");
    CHECK(run_local({"--model", "cnn", "--steps", "20", "--threads", threads}).weights_sha256() ==
          "9bf8f8cb5de1a1ab3b3bda501967ddf9d173c904d7a40cd34d210681322388e3");
    CHECK(
        run_local({"--size", "tiny", "--steps", "20", "--threads", threads}, example::gpt).weights_sha256() ==
        "40450cc92ff6918acf58d514209f22a6740ea729dd5791467d7f7a1847a6eca4");
  }
}
