#include "troupe/schedule/find_stall.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

using namespace troupe;
using namespace troupe::schedule;

namespace {

constexpr auto computing = device_activity::computing;
constexpr auto waiting = device_activity::waiting_for_tensor;
constexpr auto idle = device_activity::idle;

/// Four stages on four devices, all of them idle. In gpipe with two microbatches device d does dF0 dF1 dB0
/// dB1 dA.
job_positions four_devices() {
  job_positions seen;
  seen.running = make_plan({schedule_kind::gpipe, 4, 2, 4});
  seen.devices.assign(4, device_position{idle, 7, 0, 1.0});
  seen.loaders.resize(4);
  return seen;
}

}  // namespace

TEST_CASE("a device that does not return from an action is named, with all devices that wait for it") {
  auto seen = four_devices();
  seen.devices[0] = {waiting, 7, 2, 12.3};     // 0B0
  seen.devices[1] = {waiting, 7, 2, 12.5};     // 1B0
  seen.devices[2] = {computing, 7, 1, 600.2};  // 2F1
  seen.devices[3] = {waiting, 7, 1, 13.0};     // 3F1
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::device);
  CHECK(found.device == 2);
  CHECK(found.for_s == 600.2);
  CHECK(found.problem == "device 2 does not return from 2F1 of step 7");
  REQUIRE(found.chain.size() == 3);
  CHECK(found.chain[1].wanted == action{2, action_kind::backward, 0});
  CHECK(found.chain[1].from == 2);
  CHECK(found.text ==
        "device 0 waits for 1B0 of device 1 since 12.3 s; device 1 waits for 2B0 of device 2 since 12.5 s; "
        "device 2 has been computing 2F1 of step 7 for 600.2 s");
}

TEST_CASE("without a waiting device no stall is reported") {
  auto found = find_stall(four_devices());
  CHECK(found.cause == stall_cause::none);
  CHECK(found.chain.empty());
  CHECK(found.text.empty());
}

TEST_CASE("a chain of waits that ends at a device without a report names no cause") {
  auto seen = four_devices();
  seen.devices[0] = {waiting, 7, 2, 12};
  seen.devices[1].reset();
  CHECK(find_stall(seen).cause == stall_cause::none);
}

TEST_CASE("of two devices that hang, the one that hangs longer is named") {
  auto seen = four_devices();
  seen.devices[0] = {waiting, 7, 2, 100};
  seen.devices[1] = {computing, 7, 1, 20};
  seen.devices[3] = {device_activity::applying, 6, 4, 30};
  auto found = find_stall(seen);
  CHECK(found.device == 3);
  CHECK(found.problem == "device 3 does not return from the optimizer's step of step 6");
}

TEST_CASE("a tensor whose sender is past its action is lost, since the time when both stopped") {
  auto seen = four_devices();
  seen.devices[0] = {idle, 7, 0, 50};
  seen.devices[1] = {waiting, 7, 0, 40};
  seen.devices[0]->step = 8;
  seen.devices[2] = {waiting, 7, 0, 45};
  seen.devices[3] = {waiting, 7, 0, 45};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::lost_tensor);
  CHECK(found.device == 1);
  CHECK(found.for_s == 40);
  CHECK(found.problem == "device 1 has not got what device 0 sent after 0F0 of step 7");
  CHECK(found.text.find("device 1 waits for 0F0 of device 0 since 40.0 s; that was sent and did not come") !=
        std::string::npos);
}

TEST_CASE("a sender that is past the action within the same step has sent its tensor") {
  auto seen = four_devices();
  seen.devices[0] = {waiting, 7, 2, 40};  // has sent 0F0 and 0F1
  seen.devices[1] = {waiting, 7, 1, 40};  // 1F1
  seen.devices[2] = {waiting, 7, 1, 40};  // 2F1, for 1F1
  seen.devices[3] = {waiting, 7, 1, 40};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::lost_tensor);
  CHECK(found.device == 1);
}

TEST_CASE("a loader that does not return is distinguished from an idle one") {
  auto seen = four_devices();
  seen.devices[0] = {device_activity::waiting_for_samples, 7, 0, 30};
  seen.loaders[0] = {true, 31};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::loader);
  CHECK(found.device == 0);
  CHECK(found.for_s == 30);
  CHECK(found.text ==
        "device 0 waits for samples of step 7 since 30.0 s; its loader has been reading the dataset for 31.0 "
        "s");
  seen.loaders[0].is_working = false;
  CHECK(find_stall(seen).cause == stall_cause::lost_samples);
}

TEST_CASE("a device waits for one that was granted no step") {
  auto seen = four_devices();
  seen.devices[1] = {waiting, 7, 0, 30};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::missing_credit);
  CHECK(found.device == 0);
  CHECK(found.for_s == 1.0);
}

TEST_CASE("a plan whose actions wait in a cycle is reported") {
  auto seen = four_devices();
  // 0B0 before 0F0, while 1B0 stands where it belongs: 0 waits for 1, 1 for 0.
  std::swap(seen.running.devices[0][0], seen.running.devices[0][2]);
  seen.devices[0] = {waiting, 7, 0, 30};
  seen.devices[1] = {waiting, 7, 0, 30};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::deadlock);
  CHECK(found.chain.size() == 2);
}

TEST_CASE("a reduction waits for the missing share of a stage") {
  job_positions seen;
  seen.running = make_plan({schedule_kind::gpipe, 2, 1, 2, {{0, 1}}});
  seen.loaders.resize(2);
  auto reduction = seen.running.devices[0].size() - 2;
  REQUIRE(seen.running.devices[0][reduction].kind == action_kind::reduce_gradient);
  // Stage 1 is done with its backward first: only its own reduction waits.
  seen.devices = {device_position{computing, 3, reduction - 1, 90},
                  device_position{waiting, 3, reduction, 80}};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::device);
  CHECK(found.device == 0);
  CHECK(found.chain.size() == 2);
}

TEST_CASE(
    "a G waits for the replica before it, else for one that computes beyond its own, which was put off") {
  job_positions seen;
  seen.running = make_plan({.num_replicas = 2});
  REQUIRE(to_string(seen.running.devices[0][2]) == "0G");
  seen.loaders.resize(2);
  seen.devices = {device_position{waiting, 3, 2, 80}, device_position{computing, 3, 1, 90}};
  CHECK(find_stall(seen).problem == "device 1 does not return from 0B0 of step 3");
  // The first one has waited as long as the second one has computed.
  seen.devices[1] = {computing, 4, 0, 80};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::device);
  CHECK(found.problem == "device 1 does not return from 0F0 of step 4");
  CHECK(
      found.text ==
      "device 0 waits for 0G of device 1 since 80.0 s; device 1 has been computing 0F0 of step 4 for 80.0 s");
  seen.devices[1] = {waiting, 3, 2, 70};
  CHECK(find_stall(seen).cause == stall_cause::lost_tensor);
}

TEST_CASE("who does not come to the end of a step is in an A, finishes what is queued, or copies its state") {
  struct known {
    device_activity activity;
    std::size_t position;
    std::string problem, text;
  };
  auto seen = four_devices();
  REQUIRE(to_string(seen.running.devices[1].back()) == "1A");
  for (const auto& [activity, position, problem, text] :
       {known{device_activity::applying, 4, "return from the optimizer's step", "in the optimizer's step"},
        known{device_activity::applying, 5, "finish what is queued", "finishing what is queued"},
        known{device_activity::copying_state, 5, "copy its state", "copying its state"}}) {
    seen.devices[1] = {activity, 7, position, 30};
    auto found = find_stall(seen);
    CHECK(found.cause == stall_cause::device);
    CHECK(found.device == 1);
    CHECK(found.problem == "device 1 does not " + problem + " of step 7");
    CHECK(found.text == "device 1 has been " + text + " of step 7 for 30.0 s");
  }
}

TEST_CASE("of several tensors that a stage needs, the one that was not made is followed") {
  // 0 and 1 take samples, 2 needs the tensors of both.
  job_positions seen;
  seen.running = make_plan({.kind = schedule_kind::gpipe,
                            .num_stages = 3,
                            .num_devices = 3,
                            .edges = {{0, 0, 2, 0}, {1, 0, 2, 1}}});
  seen.loaders.resize(3);
  seen.devices = {device_position{waiting, 7, 1, 50}, device_position{computing, 7, 0, 60},
                  device_position{waiting, 7, 0, 55}};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::device);
  CHECK(found.device == 1);
  CHECK(found.text ==
        "device 0 waits for 2B0 of device 2 since 50.0 s; device 2 waits for 1F0 of device 1 since 55.0 s; "
        "device 1 has been computing 1F0 of step 7 for 60.0 s");
  // Both have been made, and one of them is lost.
  seen.devices[1] = {waiting, 7, 1, 45};
  found = find_stall(seen);
  CHECK(found.cause == stall_cause::lost_tensor);
  CHECK(found.device == 2);
  CHECK(found.for_s == 45);
  CHECK(found.problem ==
        "device 2 has not got what device 0 sent after 0F0 or what device 1 sent after 1F0 of step 7");
}

TEST_CASE("positions that do not fit the plan are refused") {
  auto seen = four_devices();
  seen.devices.pop_back();
  CHECK_THROWS_AS(find_stall(seen), std::invalid_argument);
  seen = four_devices();
  seen.devices[2] = {waiting, 7, 5, 1};
  CHECK_THROWS_AS(find_stall(seen), std::invalid_argument);
}

TEST_CASE("from each waiting device the chain of waits leads to its own cause") {
  auto seen = four_devices();
  seen.devices[0] = {waiting, 7, 2, 100};
  seen.devices[1] = {computing, 7, 1, 20};
  seen.devices[3] = {device_activity::applying, 6, 4, 30};
  auto chains = wait_chains(seen);
  REQUIRE(chains.size() == 3);
  CHECK(chains[0].chain[0].device == 0);
  CHECK(chains[0].device == 1);
  CHECK(chains[1].device == 1);
  CHECK(chains[2].device == 3);
}
