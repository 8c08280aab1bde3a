// The interpreters of one stage's replicas: what each reads of the samples, and how they add up gradients.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <deque>
#include <stdexcept>

#include "support/unlike_sums.hpp"
#include "troupe/execution/plan_interpreter.hpp"

using namespace troupe;
using namespace troupe::execution;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// One replica of a stage, on a device of its own, which sends to those of the others.
struct replica : program::stage_program, action_host {
  tensor gradients;
  std::vector<float> sums = {};
  /// With two buckets the second is this one's sum, plus 1, times that of the first.
  int buckets_of_step = 1;
  std::vector<action_kind> done = {};
  std::vector<float> samples_seen = {};
  std::vector<int> indices_seen = {};
  std::deque<replica>* all = nullptr;
  std::optional<batch> loaded = {};
  inbox box = {};
  std::optional<plan_interpreter> runs = {};
  program::step_metrics own_metrics = {};
  std::vector<program::step_metrics> all_metrics = {};
  std::string found_elsewhere = {};
  std::vector<std::string> told_non_finite = {};
  bool takes_activations = false;  ///< the last forward took activations of another stage
  bool defers = false;
  /// A forward needs the sums if its update is deferred.
  bool reads_weights = true;
  progress_callback progress = {};
  std::vector<std::string> deferred = {};
  std::vector<std::uint64_t> applied = {};  ///< steps that were applied
  /// What is sent to it for this stage is withheld.
  std::optional<std::uint32_t> withheld_stage = {};
  std::vector<std::pair<transport::tensor_tag, tensor>> withheld = {};
  std::vector<transport::tensor_tag> sent = {};

  std::vector<tensor> forward(const program::microbatch& which, std::vector<tensor> inputs,
                              tensor targets) override {
    samples_seen.push_back(inputs[0].values<float>()[0]);
    indices_seen.push_back(which.global_index());
    CHECK(which.global_count() == which.num_replicas * which.count);
    for (bool waits = false; progress && (reads_weights || !waits); waits = true) {
      auto call = progress;
      call(waits);
    }
    takes_activations = inputs[0].shape().rank() == 1;
    if (!targets.defined()) return {tensor::zeros({1})};
    return {};
  }
  std::vector<tensor> backward_input(const program::microbatch&, std::vector<tensor> gradients) override {
    if (takes_activations && gradients.empty()) return {tensor::zeros({1})};
    return {};
  }
  void backward_weight(const program::microbatch&) override {}
  int num_buckets(layout::mesh_axis, std::uint64_t) override { return buckets_of_step; }
  tensor bucket(layout::mesh_axis, int number) override {
    if (number == 0) return gradients;
    return sums.empty() ? tensor() : tensor::full({3}, 1 + sums[0]);
  }
  void take_sums(layout::mesh_axis, int, const std::vector<tensor>& parts) override {
    for (const auto& part : parts)
      for (float each : part.values<float>()) sums.push_back(each);
  }
  bool defer_update(const progress_callback& callback) override {
    progress = callback;
    return true;
  }
  void apply(std::uint64_t step) override {
    progress = nullptr;
    applied.push_back(step);
  }
  void discard() override {}
  program::step_metrics take_metrics() override { return {}; }
  std::vector<named_tensor> state() override { return {}; }
  std::vector<named_tensor> parameters() override { return {}; }
  void load_state(const std::vector<named_tensor>&) override {}

  const batch* samples() override { return &*loaded; }
  void send(const transport::tensor_tag& tag, tensor value) override {
    auto& to = (*all)[tag.replica];
    sent.push_back(tag);
    if (to.withheld_stage == tag.stage)
      to.withheld.emplace_back(tag, std::move(value));
    else
      to.box.put(tag, std::move(value));
  }
  void on_prediction(const action&, const tensor&) override {}
  void on_begin(const action&) override {}
  void on_end(const action& op) override { done.push_back(op.kind); }
  bool may_defer_updates() override { return defers; }
  /// The others go on meanwhile.
  void wait_within(const action& op, const plan_position& awaited) override {
    deferred.push_back(to_string(op) + " waits for " + std::to_string(awaited.action) + " of step " +
                       std::to_string(awaited.step));
    for (auto& other : *all)
      if (&other != this)
        while (!other.runs->is_at_end() && other.runs->run_next()) continue;
  }
  void on_end_deferred(const action& op, std::uint64_t step) override {
    deferred.push_back(to_string(op) + " of step " + std::to_string(step));
  }
  program::step_metrics metrics() override { return own_metrics; }
  void on_replica_metrics(const std::vector<program::step_metrics>& of_replicas) override {
    all_metrics = of_replicas;
  }
  std::string non_finite_elsewhere(const action&) override { return found_elsewhere; }
  bool on_non_finite(const action&, const std::string& what) override {
    told_non_finite.push_back(what);
    return false;
  }
};

/// Replicas of a stage with two microbatches each, of one sample, the numbers from 0 on.
std::deque<replica> replicas_that_run(const plan& running, const std::vector<tensor>& gradients,
                                      bool shares_metrics = false) {
  auto num_replicas = static_cast<int>(gradients.size());
  std::vector<float> samples;
  for (int i = 0; i < 2 * num_replicas; ++i) samples.push_back(static_cast<float>(i));
  std::deque<replica> all(gradients.size());
  for (int number = 0; number < num_replicas; ++number) {
    auto& one = all[static_cast<std::size_t>(number)];
    one.gradients = gradients[static_cast<std::size_t>(number)];
    auto rows = tensor::from(samples, {2 * num_replicas, 1});
    one.loaded = batch{rows, rows};
    one.runs.emplace(
        plan_interpreter::options{.running = running, .device = number, .shares_metrics = shares_metrics},
        [&one](int) -> program::stage_program& { return one; }, one.box, one);
    one.runs->begin_step(0);
  }
  return all;
}

std::deque<replica> replicas_with(const std::vector<tensor>& gradients, bool shares_metrics = false,
                                  bool averages_weights = false) {
  return replicas_that_run(make_plan({.num_microbatches = 2,
                                      .num_replicas = static_cast<int>(gradients.size()),
                                      .averages_weights = averages_weights}),
                           gradients, shares_metrics);
}

/// Each runs as far as it can, one after the other, until none gets on.
void run(std::deque<replica>& all) {
  for (auto& one : all) one.all = &all;
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& one : all)
      while (!one.runs->is_at_end() && one.runs->run_next()) moved = true;
    // A step of a G within the replica is no action.
    for (auto& one : all) moved |= !one.runs->is_at_end() && one.runs->run_next();
  }
}

}  // namespace

TEST_CASE("each replica reads its own part of the samples, replica by replica") {
  auto all = replicas_with({tensor::zeros({1}), tensor::zeros({1}), tensor::zeros({1})});
  run(all);
  CHECK(all[0].samples_seen == std::vector<float>{0, 1});
  CHECK(all[1].samples_seen == std::vector<float>{2, 3});
  CHECK(all[2].samples_seen == std::vector<float>{4, 5});
  CHECK(all[2].indices_seen == std::vector<int>{4, 5});
}

TEST_CASE(
    "replicas add up their gradients in the tree over replicas, also where some have no element to add") {
  auto values = testing::unlike_sums();
  for (std::int64_t count : {1, 3, 4, 17}) {
    std::vector<tensor> gradients;
    for (float value : values) gradients.push_back(tensor::full({count}, value));
    auto all = replicas_with(gradients);
    run(all);
    auto expected = (values[0] + values[1]) + (values[2] + values[3]);
    for (const auto& one : all) {
      CHECK(one.runs->is_at_end());
      CHECK(one.sums == std::vector<float>(static_cast<std::size_t>(count), expected));
      CHECK(one.box.num_held() == 0);
    }
  }
}

TEST_CASE("what others gave of a stage is added up and sent on before the next action, whatever its stage") {
  auto running = make_plan({.kind = schedule_kind::gpipe,
                            .num_stages = 2,
                            .num_microbatches = 2,
                            .num_devices = 1,
                            .num_replicas = 2});
  auto all = replicas_that_run(running, {tensor::zeros({8}), tensor::zeros({8})});
  for (auto& one : all) one.all = &all;
  auto run_to = [](replica& one, const std::string& name) {
    while (to_string(one.runs->actions()[one.runs->position()]) != name) REQUIRE(one.runs->run_next());
  };
  auto num_sums = [](const replica& one) {
    return std::ranges::count(one.sent, transport::tensor_role::summed_gradients,
                              &transport::tensor_tag::role);
  };
  run_to(all[0], "0B1");  // stage 1 has given its gradients
  run_to(all[1], "0B1");
  CHECK(num_sums(all[0]) == 0);
  REQUIRE(all[0].runs->run_next());
  CHECK(num_sums(all[0]) == 1);  // to the other one
  CHECK(all[0].sums.empty());
  run(all);
  CHECK(all[0].runs->is_at_end());
}

TEST_CASE("replicas that share the step's metrics get those of all, bit for bit, with their gradients") {
  auto zeros = tensor::zeros({5});
  auto all = replicas_with({zeros, zeros, zeros}, true);
  std::vector<program::step_metrics> told{{0.1 + 0.2, 64, 17}, {-1e300, 1LL << 40, 0}, {-0.0, -1, 3}};
  for (std::size_t number = 0; number < 3; ++number) all[number].own_metrics = told[number];
  run(all);
  for (const auto& one : all) {
    CHECK(one.runs->is_at_end());
    CHECK(one.all_metrics == told);
    CHECK(one.sums.size() == 5);
  }
  auto without = replicas_with({zeros, zeros});
  run(without);
  CHECK(without[0].all_metrics.empty());
}

TEST_CASE("a stage halts for what is infinite or NaN elsewhere as if it had found it") {
  auto all = replicas_with({tensor::zeros({2}), tensor::zeros({2})}, true);
  all[1].found_elsewhere = "the loss";
  run(all);
  CHECK(all[0].runs->is_at_end());
  CHECK(all[0].told_non_finite.empty());
  CHECK(all[1].runs->is_halted());
  CHECK(all[1].told_non_finite == std::vector<std::string>{"the loss"});
}

TEST_CASE("no replica goes on without the gradients of all") {
  auto all = replicas_with({tensor::zeros({8}), tensor::zeros({8})});
  for (auto& one : all) one.all = &all;
  while (all[0].runs->run_next()) continue;
  CHECK(all[0].runs->position() == 4);  // before G
  CHECK(all[0].sums.empty());
  run(all);
  CHECK(all[0].runs->is_at_end());
}

TEST_CASE("gradients that are no list of f32, or not as many in all replicas, are refused with what came") {
  auto wrong = replicas_with({tensor::zeros({2, 2}), tensor::zeros({2, 2})});
  CHECK_THROWS_MATCHES(run(wrong), std::logic_error,
                       MessageMatches(ContainsSubstring("stage_program::bucket") &&
                                      ContainsSubstring("f32, bf16, f16 or i32 [n]")));
  auto uneven = replicas_with({tensor::zeros({8}), tensor::zeros({6})});
  CHECK_THROWS_MATCHES(run(uneven), std::logic_error,
                       MessageMatches(ContainsSubstring("equally many of one dtype in all replicas")));
}

TEST_CASE("a bucket that depends on the sum of another one leaves when that is there") {
  for (std::size_t first : {0, 2}) {
    auto all = replicas_with({tensor::full({1}, 1), tensor::full({1}, 2), tensor::full({1}, 3)});
    for (auto& one : all) {
      one.all = &all;
      one.buckets_of_step = 2;
    }
    // Who comes last has the second buckets of the others there before it gives its own.
    while (all[first].runs->run_next()) continue;
    run(all);
    for (const auto& one : all) {
      CHECK(one.runs->is_at_end());
      CHECK(one.sums == std::vector<float>{6, 21, 21, 21});
      CHECK(one.box.num_held() == 0);
    }
  }
}

TEST_CASE("a G without buckets waits for no one") {
  auto all = replicas_with({tensor::zeros({8}), tensor::zeros({8})});
  for (auto& one : all) {
    one.all = &all;
    one.buckets_of_step = 0;
  }
  while (!all[0].runs->is_at_end() && all[0].runs->run_next()) continue;
  CHECK(all[0].runs->is_at_end());
  CHECK(std::ranges::count(all[0].done, action_kind::all_reduce) == 1);
  CHECK(all[1].box.num_held() == 0);
}

TEST_CASE("replicas that average weights exchange them after the optimizer's step") {
  auto all = replicas_with({tensor::full({2}, 1), tensor::full({2}, 3)}, false, true);
  for (auto& one : all) one.all = &all;
  while (all[0].runs->run_next()) continue;
  CHECK(all[0].done.back() == action_kind::apply);
  CHECK(all[1].box.num_held() == 1);
  run(all);
  for (const auto& one : all) {
    CHECK(one.runs->is_at_end());
    CHECK(one.done.back() == action_kind::all_reduce);
    CHECK(one.sums == std::vector<float>{4, 4});
  }
}

namespace {

std::deque<replica> two_replicas() { return replicas_with({tensor::full({2}, 1), tensor::full({2}, 3)}); }

/// The first one does its step 0 but for the update, and begins the next.
void defer(std::deque<replica>& all) {
  for (auto& one : all) one.all = &all;
  auto& first = all[0];
  first.defers = true;
  while (!first.runs->is_at_end() && first.runs->run_next()) continue;
  REQUIRE(first.runs->is_at_end());
  CHECK(first.runs->has_deferred_updates());
  CHECK(first.runs->deferred_at() == plan_position{0, 4});
  CHECK(first.sums.empty());
  CHECK(std::ranges::count(first.done, action_kind::apply) == 0);
  first.runs->begin_step(1);
}

}  // namespace

TEST_CASE("an update that is deferred ends before the next step's first backward, as soon as its sums come") {
  auto all = two_replicas();
  defer(all);
  auto& first = all[0];
  first.reads_weights = false;
  CHECK(first.runs->run_next());  // F0
  CHECK_FALSE(first.runs->run_next());
  CHECK(first.runs->waits_at() == plan_position{0, 4});
  CHECK(first.deferred.empty());
  while (!all[1].runs->is_at_end() && all[1].runs->run_next()) continue;
  CHECK_FALSE(all[1].runs->is_at_end());  // it does not defer, and waits for the first one's part
  CHECK(first.runs->run_next());          // B0
  CHECK(first.deferred == std::vector<std::string>{"0G of step 0", "0A of step 0"});
  CHECK(first.sums == std::vector<float>{4, 4});
  CHECK_FALSE(first.runs->has_deferred_updates());
  while (all[1].runs->run_next()) continue;
  CHECK(all[1].runs->is_at_end());
  CHECK(all[1].sums == std::vector<float>{4, 4});
  CHECK_FALSE(all[1].runs->has_deferred_updates());
}

TEST_CASE("an update whose sums come between its G and its A is applied once") {
  auto all = two_replicas();
  for (auto& one : all) one.all = &all;
  auto& first = all[0];
  first.defers = true;
  while (!first.runs->has_deferred_updates()) REQUIRE(first.runs->run_next());
  CHECK(first.runs->position() == 5);  // A
  while (all[1].runs->run_next()) continue;
  CHECK(first.runs->run_next());
  CHECK(first.runs->is_at_end());
  CHECK_FALSE(first.runs->has_deferred_updates());
  CHECK(first.applied == std::vector<std::uint64_t>{0});
  CHECK(first.sums == std::vector<float>{4, 4});
}

TEST_CASE("no G begins while an update of the step before is deferred") {
  auto running = make_plan({.num_stages = 2, .num_replicas = 2});
  running.devices[0].clear();
  for (const char* each : {"0F0", "1F0", "1B0", "1G", "0B0", "0G", "0A", "1A"})
    running.devices[0].push_back(action_from(each));
  auto all = replicas_that_run(running, {tensor::full({2}, 1), tensor::full({2}, 3)});
  for (auto& one : all) one.all = &all;
  auto& first = all[0];
  first.defers = true;
  first.reads_weights = false;
  first.withheld_stage = 0;
  while (!first.runs->is_at_end() && first.runs->run_next()) continue;
  REQUIRE(first.runs->is_at_end());
  first.runs->begin_step(1);
  while (all[1].runs->run_next()) continue;
  while (first.runs->run_next()) continue;
  CHECK(first.runs->position() == 3);  // 1G: the update of stage 1 is complete, that of stage 0 is not
  CHECK(first.applied == std::vector<std::uint64_t>{0});
  CHECK(first.runs->waits_at() == plan_position{0, 5});
  first.withheld_stage = {};
  for (auto& [tag, value] : first.withheld) first.box.put(tag, std::move(value));
  CHECK_FALSE(first.runs->run_next());
  while (all[1].runs->run_next()) continue;
  CHECK(first.runs->run_next());
  CHECK(first.runs->position() == 4);
  CHECK(first.applied == std::vector<std::uint64_t>{0, 0});
}

TEST_CASE("a forward that reads weights of a deferred update waits for it, and others get their sums") {
  auto all = two_replicas();
  defer(all);
  auto& first = all[0];
  CHECK(first.runs->run_next());
  CHECK(first.deferred ==
        std::vector<std::string>{"0F0 waits for 4 of step 0", "0G of step 0", "0A of step 0"});
  while (all[1].runs->run_next()) continue;
  CHECK(all[1].runs->is_at_end());
}

TEST_CASE("a job that may run no action goes on with its deferred updates") {
  auto all = two_replicas();
  defer(all);
  while (all[1].runs->run_next()) continue;
  all[0].runs->progress_deferred_updates();
  CHECK_FALSE(all[0].runs->has_deferred_updates());
  CHECK(all[0].runs->position() == 0);
}

TEST_CASE("a step whose deferred update is not finite is halted, and the forward that waits for it ends") {
  auto all = two_replicas();
  all[0].found_elsewhere = "the loss";
  defer(all);
  CHECK_THROWS_AS(all[0].runs->run_next(), program::action_interrupted);
  CHECK(all[0].runs->is_halted());
  CHECK_FALSE(all[0].runs->has_deferred_updates());
  CHECK(all[0].told_non_finite == std::vector<std::string>{"the loss"});
  CHECK_FALSE(all[0].runs->run_next());
}

TEST_CASE("the exchange of averaged weights is not deferred") {
  auto averaged = replicas_with({tensor::full({2}, 1), tensor::full({2}, 3)}, false, true);
  for (auto& one : averaged) one.all = &averaged;
  averaged[0].defers = true;
  while (!averaged[0].runs->is_at_end() && averaged[0].runs->run_next()) continue;
  CHECK_FALSE(averaged[0].runs->is_at_end());
  CHECK_FALSE(averaged[0].runs->has_deferred_updates());
}

TEST_CASE("U and S keep no update from being deferred, and the host is not told of them") {
  auto running = make_plan({.num_microbatches = 2, .num_replicas = 2});
  running.devices[0].clear();
  for (const char* each : {"0U", "0F0", "0F1", "0B0", "0B1", "0G", "0S", "0A"})
    running.devices[0].push_back(action_from(each));
  auto all = replicas_that_run(running, {tensor::full({2}, 1), tensor::full({2}, 3)});
  for (auto& one : all) one.all = &all;
  auto& first = all[0];
  first.defers = true;
  first.reads_weights = false;
  while (!first.runs->is_at_end() && first.runs->run_next()) continue;
  REQUIRE(first.runs->is_at_end());
  CHECK(first.runs->deferred_at() == plan_position{0, 5});
  first.runs->begin_step(1);
  CHECK(first.runs->run_next());  // U
  CHECK(first.runs->run_next());  // F0
  CHECK(first.runs->has_deferred_updates());
  CHECK(std::ranges::count(first.done, action_kind::unshard) == 0);
  CHECK(std::ranges::count(first.done, action_kind::reshard) == 0);
  while (!all[1].runs->is_at_end() && all[1].runs->run_next()) continue;
  while (!first.runs->is_at_end() && first.runs->run_next()) continue;
  CHECK(first.applied.front() == 0);
  CHECK(first.sums.front() == 4);
}
