#include <catch2/catch_test_macros.hpp>

#include "one_process.hpp"
#include "troupe/error/device_lost.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// The device's next action fails.
void fail_device(one_process& here, std::uint64_t generation, std::uint64_t step) {
  here.model->before = [](const std::string& call) {
    if (call.starts_with("F")) throw std::runtime_error("out of luck");
  };
  here.give(generation, step, step + 1);
  here.activations_come(generation, step);
  here.model->before = [](const std::string&) {};
}

}  // namespace

TEST_CASE("a device that fails is started again with the next generation, which its supervisor asks for") {
  one_process here;
  here.begin();
  here.train(1);
  fail_device(here, 1, 1);
  here.advance(1ms);
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0].first == 1);
  CHECK(here.members.requests[0].second == "device 1 on rank 1 failed: out of luck");
  here.fence(2);
  CHECK(here.members.acknowledged.back().first == 2);
  here.view(2);
  here.restore(2, own_plan(1));
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 2);
  here.give(2, 1, 2);
  here.activations_come(2, 1);
  CHECK(here.steps_done(2) == numbers{1});
  CHECK(here.members.failures.empty());
}

TEST_CASE("a device that fails in an unrelated generation change is started again with it") {
  one_process here;
  here.begin();
  here.train(1);
  fail_device(here, 1, 1);
  here.fence(2);
  here.view(2);
  here.restore(2, own_plan(1));
  here.give(2, 1, 2);
  here.activations_come(2, 1);
  CHECK(here.steps_done(2) == numbers{1});
  here.advance(1ms);
  // The request names the generation that failed, so that the agent can see that it is over.
  for (const auto& [generation, cause] : here.members.requests) CHECK(generation == 1);
}

TEST_CASE("restarts wait longer each time, and too many of them fail the job with the cause") {
  one_process here;
  here.begin();
  for (std::uint64_t generation = 1; generation <= 4; ++generation) {
    fail_device(here, generation, 0);
    if (generation == 4) break;
    here.advance(1ms);
    CHECK(here.members.requests.size() == (generation == 1 ? 1 : generation - 1));
    here.advance(200ms);
    CHECK(here.members.requests.size() == generation);
    here.fence(generation + 1);
    here.view(generation + 1);
    here.restore(generation + 1);
  }
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("device 1 on rank 1 failed: out of luck") != std::string::npos);
  CHECK(here.members.failures[0].find("3 restarts") != std::string::npos);
  CHECK(here.members.requests.size() == 3);
}

TEST_CASE("bad input fails the job at once, without a restart") {
  one_process here;
  here.begin();
  here.model->before = [](const std::string& call) {
    if (call.starts_with("F")) throw bad_input("label 11 of 10 classes");
  };
  here.give(1, 0, 1);
  here.activations_come(1, 0);
  here.advance(5s);
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0] == "device 1 on rank 1 failed: label 11 of 10 classes");
  CHECK(here.members.requests.empty());
}

namespace {

/// The device's next action finds that its GPU is lost.
void lose_gpu(one_process& here) {
  here.begin();
  here.model->before = [](const std::string& call) {
    if (call.starts_with("F")) throw device_lost("an illegal address");
  };
  here.give(1, 0, 1);
  here.activations_come(1, 0);
  here.advance(5s);
}

}  // namespace

TEST_CASE("a process whose GPU is lost ends, where another one replaces it") {
  one_process here;
  here.launch();
  lose_gpu(here);
  CHECK(here.num_kills == 1);
  CHECK(here.members.failures.empty());
  CHECK(here.members.requests.empty());
}

TEST_CASE("a GPU that is lost ends the job of a process that nobody replaces") {
  one_process here;
  lose_gpu(here);
  CHECK(here.num_kills == 0);
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0] == "device 1 on rank 1 failed: an illegal address");
  CHECK(here.members.requests.empty());
}

TEST_CASE("a stage that fails is started again, without copies, and gets its state from the peer") {
  one_process here;
  here.begin();
  here.train(1);
  here.out.before_tensor = [](const transport::tensor_tag& tag) {
    if (tag.role == transport::tensor_role::snapshot_part) throw std::runtime_error("no buffers");
  };
  here.give(1, 1, 2, {{2, 0}});
  here.activations_come(1, 1);
  here.out.before_tensor = [](const transport::tensor_tag&) {};
  here.advance(1ms);
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0].second == "stage 1 on rank 1 failed: no buffers");
  here.fence(2);
  here.view(2);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.parts.empty());
  here.restore(2, plan_of(1, from(0, 0, own), from(1, 0, peer)));
  here.part_arrives(2, 1, 1, packed_with(7, 1));
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 2);
  CHECK(here.members.failures.empty());
}

TEST_CASE(
    "a stage that was lost before it could be restored waits for the next generation, and fails nothing") {
  one_process here;
  here.begin();
  here.train(1);
  here.out.before_tensor = [](const transport::tensor_tag& tag) {
    if (tag.role == transport::tensor_role::snapshot_part) throw std::runtime_error("no buffers");
  };
  here.give(1, 1, 2, {{2, 0}});
  here.activations_come(1, 1);
  here.restore(1, own_plan(1));  // on its way already
  CHECK(here.members.failures.empty());
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
}

TEST_CASE("a stage that fails while it is restored is started again like any other actor") {
  for (std::string point : {"N", "D", "L"}) {
    INFO("at " << point);
    one_process here;
    here.begin();
    here.train(1);
    here.fence(2);
    here.view(2);
    here.model->before = [point](const std::string& call) {
      if (call.starts_with(point)) throw std::runtime_error("out of luck");
    };
    here.restore(2, point == "N" ? recovery::restore_plan() : own_plan(1));
    here.advance(1ms);
    CHECK(here.members.failures.empty());
    REQUIRE(here.members.requests.size() == 1);
    CHECK(here.members.requests[0] ==
          std::pair<std::uint64_t, std::string>(2, "stage 1 on rank 1 failed: out of luck"));
    here.model->before = [](const std::string&) {};
    here.fence(3);
    here.view(3);
    CHECK(here.sent<actors::messages::copies_held>().back().inventory.parts.empty());
    here.restore(3, plan_of(1, from(0, 0, own), from(1, 0, peer)));
    here.part_arrives(3, 1, 1, packed_with(7, 1));
    CHECK(here.sent<actors::messages::process_restored>().back().generation == 3);
  }
}

TEST_CASE("bad input found during the restore of a stage fails the job at once") {
  one_process here;
  here.model->before = [](const std::string& call) {
    if (call.starts_with("N")) throw bad_input("no file of weights");
  };
  here.begin();
  here.advance(5s);
  CHECK(here.members.failures == std::vector<std::string>{"stage 1 on rank 1 failed: no file of weights"});
  CHECK(here.members.requests.empty());
}

TEST_CASE("a stage that fails takes its device along, and no other stage or device of the process") {
  one_process here(1, 2, 4);
  here.devices_per_rank = 2;
  here.define();
  here.view(1);
  here.enter(0);
  here.restore(1);
  here.fence(2);
  here.view(2);
  here.model->before = [](const std::string& call) {
    if (call == "N3") throw std::runtime_error("out of luck");
  };
  here.restore(2);  // from scratch: stage 2 is made anew, stage 3 fails
  here.advance(1ms);
  here.model->before = [](const std::string&) {};
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0].second == "stage 3 on rank 1 failed: out of luck");
  CHECK(here.logged().find("actor=\"stage 3\" reason=\"out of luck\" restarts=\"stage 3, device 3\"") !=
        std::string::npos);
  here.fence(3);
  here.view(3);
  here.model->calls.clear();
  here.restore(3, {4, false, {from(0, 0, own), from(1, 0, own), from(2, 0, peer), from(3, 0, peer)}});
  for (int stage : {2, 3}) here.part_arrives(3, 4, stage, packed_with(7, 4, static_cast<int>(stage)));
  CHECK(here.model->calls == std::vector<std::string>{"D2", "L2", "N3", "D3", "L3"});
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 3);
  CHECK(here.members.failures.empty());
}

TEST_CASE("a message that cannot be sent costs a new generation") {
  one_process here;
  struct broken : recording_transport {
    using recording_transport::recording_transport;
    void send_control(int, std::uint64_t, std::span<const std::byte>) override {
      throw std::runtime_error("no buffers");
    }
  } transport{1};
  here.spawn_supervisor(transport);
  here.view(1);
  here.enter(0, actors::job::call_kind::barrier);
  here.advance(1ms);
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0].second == "the link to rank 0 on rank 1 failed: no buffers");
}

TEST_CASE("links and schedulers that a new generation replaces are no failures") {
  for (int rank : {0, 1}) {
    one_process here(rank);
    here.begin();
    for (std::uint64_t generation = 2; generation < 6; ++generation) {
      here.fence(generation);
      here.view(generation);
      here.advance(5s);
    }
    CHECK(here.members.requests.empty());
    CHECK(here.members.failures.empty());
  }
}
