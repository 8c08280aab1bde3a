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

#include "runtime/execution/traced_program.hpp"
#include "runtime/schedule/drawn_plans.hpp"
#include "troupe/execution/plan_interpreter.hpp"
#include "troupe/schedule/check_plan.hpp"
#include "troupe/schedule/plan_text.hpp"
#include "troupe/transport/loopback_transport.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::uint64_t num_steps = 2;

pass_kind pass_of(const plan& running) {
  return running.kind == schedule_kind::forward_only ? pass_kind::evaluate : pass_kind::train;
}

/// Splits some backwards: the weight gradient comes later, but before the next one of its stage, and
/// before all reductions.
void split_backwards(plan& changed, std::mt19937& random) {
  using enum action_kind;
  for (auto& actions : changed.devices)
    for (auto at = static_cast<std::ptrdiff_t>(actions.size()); at-- > 0;) {
      auto& op = actions[static_cast<std::size_t>(at)];
      if (op.kind != backward || drawn_below(2, random) == 0) continue;
      op.kind = input_gradient;
      auto next = std::find_if(actions.begin() + at, actions.end(), [&op](const action& other) {
        bool is_after_all = other.kind == reduce_gradient || other.kind == apply;
        bool is_next = other.kind == backward || other.kind == weight_gradient;
        return is_after_all || (is_next && other.stage == op.stage);
      });
      auto room = static_cast<int>(next - actions.begin() - at);
      action weights{op.stage, weight_gradient, op.microbatch};
      actions.insert(actions.begin() + at + 1 + drawn_below(room, random), weights);
    }
}

plan drawn_plan(std::mt19937& random) {
  auto drawn = make_plan(drawn_options(6, 5, random));
  split_backwards(drawn, random);
  return drawn;
}

/// All stages of a plan, whichever device runs them.
class traced_stages {
 public:
  explicit traced_stages(const plan& running) {
    for (int stage = 0; stage < running.num_stages; ++stage)
      stages_.push_back(std::make_unique<traced_program>(running, stage));
  }
  traced_program& at(int stage) { return *stages_[static_cast<std::size_t>(stage)]; }
  std::vector<std::uint64_t> results() const {
    std::vector<std::uint64_t> all;
    for (const auto& each : stages_) all.push_back(each->result());
    return all;
  }

 private:
  std::vector<std::unique_ptr<traced_program>> stages_;
};

/// One device: its samples come late, and what it sends goes to a function.
class test_device : private action_host {
 public:
  using sender = std::function<void(const tensor_tag&, tensor)>;
  test_device(const plan& running, int device, traced_stages& stages, sender send)
      : send_(std::move(send)),
        interpreter_(
            {.running = running, .device = device, .pass = pass_of(running)},
            [&stages](int stage) -> stage_program& { return stages.at(stage); }, box_, *this) {}

  /// Runs one action, or whatever else is next. False: it waits for a tensor.
  bool run_next() {
    if (!begun_) {
      interpreter_.begin_step(step_);
      samples_.reset();
      begun_ = true;
    }
    if (interpreter_.is_at_end()) {
      begun_ = false;
      ++step_;
      return true;
    }
    if (interpreter_.run_next()) return true;
    if (!interpreter_.needs_samples()) return false;
    samples_ = traced_samples(interpreter_.running(), step_);
    return true;
  }
  bool is_done() const { return step_ == num_steps; }
  void take(const tensor_tag& tag, tensor value) { box_.put(tag, std::move(value)); }

 private:
  const batch* samples() override { return samples_ ? &*samples_ : nullptr; }
  void send(const tensor_tag& tag, tensor value) override { send_(tag, std::move(value)); }
  void on_prediction(const action&, const tensor&) override {}
  void on_begin(const action&) override {}
  void on_end(const action&) override {}
  bool on_non_finite(const action&, const std::string&) override { return false; }

  sender send_;
  inbox box_;
  plan_interpreter interpreter_;
  std::uint64_t step_ = 0;
  bool begun_ = false;
  std::optional<batch> samples_;
};

/// Whether all devices get to the end of their steps: one after the other at random runs an action, or a
/// tensor that is under way arrives, in any order.
bool run_in_turns(const plan& running, traced_stages& stages, std::mt19937& random) {
  std::vector<std::pair<tensor_tag, tensor>> under_way;
  auto send = [&](const tensor_tag& tag, tensor value) { under_way.emplace_back(tag, std::move(value)); };
  std::deque<test_device> devices;
  for (int device = 0; device < running.num_devices(); ++device)
    devices.emplace_back(running, device, stages, send);
  auto arrive = [&] {
    auto chosen = under_way.begin() + drawn_below(static_cast<int>(under_way.size()), random);
    auto [tag, value] = std::move(*chosen);
    under_way.erase(chosen);
    devices[static_cast<std::size_t>(running.device_of_stage[tag.stage])].take(tag, std::move(value));
  };
  for (bool moved = true; moved;) {
    moved = false;
    auto first = drawn_index(devices.size(), random);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      auto& device = devices[(first + i) % devices.size()];
      moved |= !device.is_done() && device.run_next();
      if (under_way.empty() || (moved && drawn_below(2, random) == 0)) continue;
      arrive();
      moved = true;
    }
  }
  return std::ranges::all_of(devices, [](const test_device& each) { return each.is_done(); });
}

/// One device with a thread and a transport of its own.
class threaded_device : private transport_events {
 public:
  threaded_device(const plan& running, int device, traced_stages& stages, test_device::sender send)
      : device_(running, device, stages, std::move(send)), link_(make_loopback_transport(*this)) {
    link_->connect(1, {{0, link_->begin_generation(1)}});
  }
  /// From any thread: the tensor passes this device's transport.
  void arrive(const tensor_tag& tag, tensor value) {
    auto passed = tag;
    passed.generation = 1;
    link_->send_tensor(0, passed, std::move(value));
  }
  void run() {
    while (!device_.is_done()) {
      if (device_.run_next()) continue;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !arrived_.empty(); });
      for (auto& [tag, value] : std::exchange(arrived_, {})) device_.take(tag, std::move(value));
    }
  }

 private:
  void on_control(int, std::uint64_t, std::span<const std::byte>) override {}
  void on_peer_error(int, std::uint64_t, const std::string&) override {}
  void on_tensor(int, const tensor_tag& tag, tensor value) override {
    auto of_plan = tag;
    of_plan.generation = 0;
    std::lock_guard lock(mutex_);
    arrived_.emplace_back(of_plan, std::move(value));
    changed_.notify_one();
  }

  test_device device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<tensor_tag, tensor>> arrived_;
  std::unique_ptr<transport> link_;
};

void run_on_threads(const plan& running, traced_stages& stages) {
  std::deque<threaded_device> devices;
  auto send = [&](const tensor_tag& tag, tensor value) {
    devices[static_cast<std::size_t>(running.device_of_stage[tag.stage])].arrive(tag, std::move(value));
  };
  for (int device = 0; device < running.num_devices(); ++device)
    devices.emplace_back(running, device, stages, send);
  std::vector<std::jthread> threads;
  for (auto& each : devices) threads.emplace_back([&each] { each.run(); });
}

}  // namespace

TEST_CASE("10,000 drawn plans run to their ends, and compute what one stage after the other computes") {
  for (unsigned seed = 0; seed < 10'000; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_plan(random);
    CAPTURE(seed, plan_text(running));
    REQUIRE(check_plan(running).empty());
    traced_stages stages(running);
    REQUIRE(run_in_turns(running, stages, random));
    REQUIRE(stages.results() == expected_results(running, pass_of(running) == pass_kind::train, num_steps));
  }
}

TEST_CASE("drawn plans run to their ends on a thread for each device, over transports") {
  for (unsigned seed = 20'000; seed < 20'300; ++seed) {
    std::mt19937 random(seed);
    auto running = drawn_plan(random);
    CAPTURE(seed, plan_text(running));
    traced_stages stages(running);
    run_on_threads(running, stages);
    REQUIRE(stages.results() == expected_results(running, pass_of(running) == pass_kind::train, num_steps));
  }
}

TEST_CASE("the same stages on other devices compute the same") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    auto options = drawn_options(6, 5, random);
    std::vector<std::uint64_t> first;
    for (int draw = 0; draw < 3; ++draw) {
      options.num_devices = 1 + drawn_below(options.num_stages, random);
      options.device_of_stage = drawn_placement(options.num_stages, options.num_devices, random);
      auto running = make_plan(options);
      traced_stages stages(running);
      REQUIRE(run_in_turns(running, stages, random));
      if (first.empty()) first = stages.results();
      CAPTURE(seed, plan_text(running));
      REQUIRE(stages.results() == first);
    }
  }
}
