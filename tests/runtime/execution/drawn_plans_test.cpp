// Drawn plans are run by interpreters: on devices that take turns at random over links that delay tensors,
// and on threads over transports.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "runtime/execution/test_devices.hpp"
#include "runtime/schedule/drawn_plans.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/schedule_table.hpp"
#include "troupe/schedule/text/plan_text.hpp"
#include "troupe/transport/loopback_transport.hpp"

using namespace troupe;
using namespace troupe::execution;
using namespace troupe::testing;

namespace {

constexpr std::uint64_t num_steps = 2;

bool run_in_turns(const plan& running, traced_stages& stages, std::mt19937& random) {
  return devices_in_turns(running, stages).run_to(step_cut(running, num_steps), random);
}

/// One device with a thread and a transport of its own.
class threaded_device : private transport::transport_events {
 public:
  threaded_device(const plan& running, int device, traced_stages& stages, test_device::sender send)
      : device_(running, device, stages, std::move(send)), link_(make_loopback_transport(*this)) {
    device_.wait = [this] { receive(); };
    link_->connect(1, {{0, link_->begin_generation(1)}});
  }
  /// From any thread: the tensor passes this device's transport.
  void arrive(const transport::tensor_tag& tag, tensor value) {
    auto passed = tag;
    passed.generation = 1;
    link_->send_tensor(0, passed, std::move(value));
  }
  void run() {
    while (device_.position() < plan_position{num_steps, 0}) {
      if (!device_.run_next()) receive();
    }
  }

 private:
  void receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !arrived_.empty(); });
    for (auto& [tag, value] : std::exchange(arrived_, {})) device_.take(tag, std::move(value));
  }
  void on_control(int, std::uint64_t, std::span<const std::byte>) override {}
  void on_peer_error(int, std::uint64_t, const std::string&) override {}
  void on_tensor(int, const transport::tensor_tag& tag, tensor value) override {
    auto of_plan = tag;
    of_plan.generation = 0;
    std::lock_guard lock(mutex_);
    arrived_.emplace_back(of_plan, std::move(value));
    changed_.notify_one();
  }

  test_device device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<transport::tensor_tag, tensor>> arrived_;
  std::unique_ptr<troupe::transport::transport> link_;
};

void run_on_threads(const plan& running, traced_stages& stages) {
  std::deque<threaded_device> devices;
  auto send = [&](const transport::tensor_tag& tag, tensor value) {
    devices[static_cast<std::size_t>(receiver_of(tag, running))].arrive(tag, std::move(value));
  };
  for (int device = 0; device < running.num_running_lanes() * running.num_devices(); ++device)
    devices.emplace_back(running, device, stages, send);
  std::vector<std::jthread> threads;
  for (auto& each : devices) threads.emplace_back([&each] { each.run(); });
}

}  // namespace

TEST_CASE("10,000 drawn plans run to their ends, and compute what one stage after the other computes",
          "[many]") {
  for (unsigned seed = 0; seed < 10'000; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_split_plan(random);
    CAPTURE(seed, schedule::plan_text(running));
    REQUIRE(schedule::check_plan(running).empty());
    traced_stages stages(running);
    REQUIRE(run_in_turns(running, stages, random));
    REQUIRE(stages.results() == expected_results(running, pass_of(running) == pass_kind::train, num_steps));
  }
}

TEST_CASE("10,000 drawn plans of several replicas and slices compute what their lanes compute in step",
          "[many]") {
  for (unsigned seed = 0; seed < 10'000; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_mesh_plan(random);
    CAPTURE(seed, schedule::plan_text(running));
    REQUIRE(schedule::check_plan(running).empty());
    traced_stages stages(running);
    REQUIRE(run_in_turns(running, stages, random));
    REQUIRE(stages.results() == expected_results(running, pass_of(running) == pass_kind::train, num_steps));
  }
}

TEST_CASE("replicas without a batch of an evaluation's last step send their weights to those that have one") {
  constexpr std::uint64_t num_batches = 4;
  for (bool frees : {false, true})
    for (unsigned seed = 0; seed < 50; ++seed) {
      CAPTURE(frees, seed);
      std::mt19937 random(seed);
      auto running = forward_projection(make_plan({.num_stages = 3,
                                                   .num_microbatches = 2,
                                                   .num_devices = 1,
                                                   .num_replicas = 3,
                                                   .has_equal_replicas = true,
                                                   .gathers = {.gathers = true, .frees = frees}}),
                                        2);
      traced_stages stages(running);
      devices_in_turns devices(running, stages, num_batches);
      REQUIRE(devices.run_to(step_cut(running, 2), random));
      // What comes to a replica that runs nothing more stays, but where nothing is sent to it.
      for (int device = 0; frees && device < 3; ++device) CHECK(devices.at(device).num_unread() == 0);
    }
}

TEST_CASE("lanes that run drawn passes together, on a thread for each device, compute the same as in step") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_mesh_plan(random, true);
    CAPTURE(seed, schedule::plan_text(running));
    REQUIRE(schedule::check_plan(running).empty());
    traced_stages stages(running);
    run_on_threads(running, stages);
    REQUIRE(stages.results() == expected_results(running, pass_of(running) == pass_kind::train, num_steps));
  }
}

TEST_CASE("drawn plans run to their ends on a thread for each device, over transports") {
  for (unsigned seed = 20'000; seed < 20'300; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_split_plan(random);
    CAPTURE(seed, schedule::plan_text(running));
    traced_stages stages(running);
    run_on_threads(running, stages);
    REQUIRE(stages.results() == expected_results(running, pass_of(running) == pass_kind::train, num_steps));
  }
}

TEST_CASE("the same stages on other devices compute the same", "[many]") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    auto options = drawn_options(6, 5, random);
    if (schedule::schedule_of(options.kind).chunked) continue;  // says itself which device has which stages
    std::vector<std::uint64_t> first;
    for (int draw = 0; draw < 3; ++draw) {
      options.num_devices = 1 + drawn_below(options.num_stages, random);
      options.device_of_stage = drawn_placement(options.num_stages, options.num_devices, random);
      auto running = make_plan(options);
      traced_stages stages(running);
      REQUIRE(run_in_turns(running, stages, random));
      if (first.empty()) first = stages.results();
      CAPTURE(seed, schedule::plan_text(running));
      REQUIRE(stages.results() == first);
    }
  }
}
