#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "runtime/execution/traced_program.hpp"
#include "troupe/execution/plan_interpreter.hpp"
#include "troupe/schedule/cut.hpp"

namespace troupe::testing {

/// A plan of drawn_options in which some backwards are split.
plan drawn_split_plan(std::mt19937& random);

/// The same of one to six lanes, with Gs over both axes, reductions among lanes, Us and Ss at drawn places,
/// and weights that are averaged now and then. `has_joint`: lanes run some passes together.
plan drawn_mesh_plan(std::mt19937& random, bool has_joint = false);

/// Training, unless the plan has forwards only.
execution::pass_kind pass_of(const plan& running);

/// All stages of the lanes that run a plan, whichever device has them.
class traced_stages {
 public:
  explicit traced_stages(const plan& running);
  traced_program& at(int stage, int lane = 0) {
    auto number = lane * num_stages_ + stage;
    return *stages_[static_cast<std::size_t>(number)];
  }
  std::vector<std::uint64_t> results() const;

 private:
  int num_stages_;
  std::vector<std::unique_ptr<traced_program>> stages_;
};

/// The device of the job that a tensor goes to.
int receiver_of(const transport::tensor_tag& tag, const plan& running);

constexpr auto all_batches = std::numeric_limits<std::uint64_t>::max();

/// One device: its samples come late, and what it sends goes to a function.
class test_device : private execution::action_host {
 public:
  using sender = std::function<void(const transport::tensor_tag&, tensor)>;
  test_device(const plan& running, int device, traced_stages& stages, sender send,
              std::uint64_t num_batches = all_batches);

  /// Runs one action, or whatever else is next. False: it waits for a tensor.
  bool run_next();
  /// What waits for a tensor within an action, where lanes run it together: puts some into the device.
  std::function<void()> wait = {};
  plan_position position() const;
  void take(const transport::tensor_tag& tag, tensor value) { box_.put(tag, std::move(value)); }
  /// Tensors that no action has taken.
  std::size_t num_unread() const { return box_.num_held(); }

 private:
  const batch* samples() override { return samples_ ? &*samples_ : nullptr; }
  void send(const transport::tensor_tag& tag, tensor value) override { send_(tag, std::move(value)); }
  void on_prediction(const action&, const tensor&) override {}
  void on_begin(const action&) override {}
  void on_end(const action&) override {}
  bool may_wait_within() override { return wait != nullptr; }
  void wait_within(const action&, const plan_position&) override { wait(); }
  bool on_non_finite(const action&, const std::string&) override { return false; }

  sender send_;
  execution::inbox box_;
  execution::plan_interpreter interpreter_;
  std::uint64_t step_ = 0;
  bool begun_ = false;
  std::optional<batch> samples_;
};

/// The devices of a plan: one after the other at random runs an action, or a tensor that is under way
/// arrives, in any order.
class devices_in_turns {
 public:
  devices_in_turns(const plan& running, traced_stages& stages, std::uint64_t num_batches = all_batches);
  /// Whether all devices get to their positions. Returns when none can run any more and all tensors have
  /// arrived.
  bool run_to(const cut& end, std::mt19937& random);
  const test_device& at(int device) const { return devices_[static_cast<std::size_t>(device)]; }

 private:
  void arrive(std::mt19937& random);

  const plan& running_;
  std::deque<test_device> devices_;
  std::vector<std::pair<transport::tensor_tag, tensor>> under_way_;
};

}  // namespace troupe::testing
