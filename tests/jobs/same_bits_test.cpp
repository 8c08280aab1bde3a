#include <catch2/catch_test_macros.hpp>

#include "jobs/job.hpp"

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
