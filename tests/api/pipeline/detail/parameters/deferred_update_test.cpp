// Forwards of the next step that begin while the update of a stage's weights is incomplete.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/pipeline/replica_steps.hpp"
#include "api/pipeline/tested_programs.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/tied_linear.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/pipeline/detail/parameters/deferred_update.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// What passes through it in order: the number of buckets taken so far.
class recorder : public nn::Module {
 public:
  recorder(const int& num_taken, std::vector<int>& seen) : num_taken_(num_taken), seen_(seen) {}
  variable forward(const variable& x) override {
    seen_.push_back(num_taken_);
    return x;
  }
  std::shared_ptr<nn::Module> clone() const override { return std::make_shared<recorder>(*this); }

 private:
  const int& num_taken_;
  std::vector<int>& seen_;
};

/// A layer of two operations with weights.
class two_linears : public nn::module_of<two_linears> {
 public:
  explicit two_linears(recorder after_each) : after_each_(std::move(after_each)) {}
  variable forward(const variable& x) override { return after_each_(second_(after_each_(first_(x)))); }
  void each_child(const child_visitor& visit) override {
    visit("first", first_);
    visit("second", second_);
  }

 private:
  nn::Linear first_{200, 150}, second_{150, 200};
  recorder after_each_;
};

/// Reads the weight of a layer before it runs it.
class reads_unready : public nn::module_of<reads_unready> {
 public:
  variable forward(const variable& x) override {
    sum_ += linear_.parameters().front()->value().values<float>()[0];
    return linear_(x);
  }
  void each_child(const child_visitor& visit) override { visit("", linear_); }

 private:
  nn::Linear linear_{200, 150};
  float sum_ = 0;
};

/// The exchange of a deferred update as the interpreter drives it: with each wait one bucket comes, in
/// `order`, then the optimizer's step.
struct deferred_exchange {
  program::stage_program& program;
  std::uint64_t step = 0;
  std::vector<int> order;
  int& num_taken;
  int num_waits = 0;

  void operator()(bool waits) {
    if (!waits) return;
    ++num_waits;
    take_next();
    if (!order.empty()) return;
    CHECK(program.non_finite().empty());
    program.apply(step);
  }
  void take_next() {
    auto bucket = order.front();
    order.erase(order.begin());
    auto sum = program.bucket(layout::mesh_axis::dp, bucket).to({}).clone();
    for (float& each : sum.values<float>()) each *= 2;
    ++num_taken;
    program.take_sums(layout::mesh_axis::dp, bucket, {sum});
  }
};

/// Three steps whose updates end within the next forward, or before it.
void check_deferred(const nn::Graph& model, const numeric_options& numerics, const std::vector<int>& order,
                    int& num_taken) {
  auto make = [&] {
    return testing::programs_of(model, 1,
                                {.optimizer = optim::Adam(), .seed = 7, .numerics = numerics})({.stage = 0});
  };
  auto program = make(), expected = make();
  std::deque<deferred_exchange> exchanges;
  for (std::uint64_t step = 0; step < 3; ++step) {
    compute(*expected, step);
    take_sums(*expected);
    expected->apply(step);
    num_taken = 0;
    compute(*program, step);
    auto& next = exchanges.emplace_back(*program, step, order, num_taken);
    REQUIRE(program->defer_update([&next](bool waits) { next(waits); }));
  }
  while (!exchanges.back().order.empty()) exchanges.back()(true);
  check_same(*expected, *program);
}

}  // namespace

TEST_CASE("a forward waits for the weights of a deferred update one by one, which has the same bits") {
  int num_taken = 0;
  std::vector<int> seen;
  recorder at(num_taken, seen);
  for (auto precision : {dtype::f32, dtype::bf16}) {
    nn::Sequential model(at, nn::Linear(200, 150), at, nn::ReLU(), nn::Linear(150, 200), nn::ReLU(), at,
                         nn::Linear(200, 3), at);
    seen.clear();
    // Bucket 0: all small ones, among them the biases; 1: 1.weight; 2: 4.weight.
    check_deferred(model, {.precision = precision}, {0, 1, 2}, num_taken);
    auto last = std::vector<int>(seen.end() - 4, seen.end());
    CHECK(last == std::vector<int>{0, 2, 3, 3});
  }
}

TEST_CASE("a layer of several operations waits for each one's weights when it comes to it") {
  int num_taken = 0;
  std::vector<int> seen;
  for (auto precision : {dtype::f32, dtype::bf16}) {
    nn::Sequential model(two_linears(recorder(num_taken, seen)));
    seen.clear();
    // Bucket 0: all small ones; 1: the first operation's weight; 2: the second one's.
    check_deferred(model, {.precision = precision}, {0, 1, 2}, num_taken);
    auto last = std::vector<int>(seen.end() - 2, seen.end());
    CHECK(last == std::vector<int>{2, 3});
  }
}

TEST_CASE(
    "a layer that reads a weight without waiting for it is an error in the first step, where updates may be "
    "deferred",
    "[host]") {
  auto first_step = [](const numeric_options& numerics, int num_shards = 1) {
    auto program = testing::programs_of(
        nn::Sequential(reads_unready()), 1,
        {.optimizer = optim::Adam(), .numerics = numerics, .num_shards = num_shards})({.stage = 0});
    compute(*program, 0);
  };
  auto check_refused = [&](const numeric_options& numerics, int num_shards) {
    CHECK_THROWS_WITH(first_step(numerics, num_shards), ContainsSubstring("in layer 0") &&
                                                            ContainsSubstring("weight[150, 200]") &&
                                                            ContainsSubstring("wait_ready()"));
  };
  check_refused({}, 1);
  first_step({.clip_grad_norm = 1});  // its updates are not deferred
  // Forwards wait for weights of other shards all the same.
  check_refused({.clip_grad_norm = 1, .shard = shard_strategy::optimizer}, 2);
}

TEST_CASE("a forward waits for the first use of a weight that it uses several times") {
  int num_taken = 0;
  std::vector<int> seen;
  recorder at(num_taken, seen);
  for (auto precision : {dtype::f32, dtype::bf16}) {
    nn::Sequential model(nn::Linear(200, 150), nn::ReLU(), at, nn::Linear(150, 150), at, nn::ReLU(),
                         nn::TiedLinear(150, 150, "3.weight"), at, nn::Linear(150, 120));
    seen.clear();
    // Bucket 0: all small ones; 1: 0.weight; 2: 3.weight; 3: the last layer's, without which no update ends.
    check_deferred(model, {.precision = precision}, {1, 0, 2, 3}, num_taken);
    auto last = std::vector<int>(seen.end() - 3, seen.end());
    CHECK(last == std::vector<int>{2, 3, 3});
  }
}

TEST_CASE("an update is deferred only where a weight's step needs nothing but its own gradient") {
  device_under_test();  // skips here, not within what must not throw
  auto none = [](bool) {};
  auto defers = [&none](program::stage_program& program) {
    compute(program, 0);
    return program.defer_update(none);
  };
  CHECK(defers(*program_with(optim::Adam())));
  CHECK_FALSE(defers(*program_with(whole_adam())));
  CHECK_FALSE(defers(*program_with(optim::Adam(), {.clip_grad_norm = 1})));
  CHECK_FALSE(defers(*program_with(optim::Adam(), {.exchange = {.average_every = 2}})));
}

TEST_CASE("a deferred update tells of its own step's loss and gradients, not of the next forward's") {
  const std::vector<std::string> names{"0.bias", "0.weight", "2.weight"};
  for (int broken : {0, 1, 2}) {
    auto program = program_with(optim::Adam());
    compute(*program, 0);
    REQUIRE(program->defer_update([](bool) {}));
    take_sums(*program, broken);
    program->forward({.step = 1, .num_replicas = 2}, {tensor::full({4, 200}, 1e30F)},
                     tensor::from(std::vector<std::int64_t>{0, 1, 2, 1}, {4}));
    CHECK(program->non_finite() == "the gradient of " + names[static_cast<std::size_t>(broken)]);
  }
}

TEST_CASE(
    "each use of a tied weight waits for the step of the first one; nothing waits for an ended update") {
  parameter first("weight", tensor::zeros({2}), tensor::zeros({2})), second = first;
  bool is_stepped = false;
  std::vector<bool> waits;
  auto callback = [&](bool is_waiting) {
    waits.push_back(is_waiting);
    is_stepped = is_waiting;
  };
  detail::deferred_update update(
      {{"0.weight", &first}},
      {{.uses = {"0.weight", "1.weight"}, .here = {{"0.weight", &first}, {"1.weight", &second}}}},
      [&](std::size_t) { return is_stepped; });
  update.begin(callback);
  CHECK_THROWS_AS(second.value(), std::logic_error);
  second.wait_ready();
  CHECK(waits == std::vector<bool>{false, true});
  CHECK(second.value().defined());
  update.progress();
  CHECK(waits == std::vector<bool>{false, true, false});
  update.begin(callback);
  update.end();
  CHECK_FALSE(update.is_pending());
  CHECK(first.value().defined());
  update.progress();
  CHECK(waits.size() == 3);
}

TEST_CASE("a deferred update that is discarded leaves nothing behind") {
  auto program = program_with(optim::Adam());
  auto saved = copy_of_state(*program);
  compute(*program, 0);
  REQUIRE(program->defer_update([](bool) {}));
  check_discarded(*program, saved);
}
