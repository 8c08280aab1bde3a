// A DataParallel beside captured_pass: over two emulated GPUs and the NCCL of tests.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/collective/libraries/nccl_members.hpp"
#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/captured_pass.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/data_parallel/data_parallel.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::int64_t batch = 4, features = 6, classes = 3;
constexpr int num_steps = 5;

/// One member's model, its batch in tensors that stay where they are, and what trains it.
class trained_model {
 public:
  explicit trained_model(communicator& group, int replicas_of_each = 1)
      : group_(group), model_(nn::Linear(features, 5), nn::Linear(5, classes)) {
    model_.materialize(3);
    model_.to(group.device());
    samples_ = tensor::zeros({batch, features}).to(group.device());
    labels_ = tensor::zeros({batch}, dtype::i64).to(group.device());
    replicated.emplace(model_, group, data_parallel_options{.num_replicas = group.size() * replicas_of_each});
    optimizer_ = replicated->make_optimizer(optim::AdamW({.lr = 1e-2}));
  }

  void load_batch(int step, int replica = 0) {
    auto member = 2 * group_.rank() + replica;
    samples_.copy_from(random_tensor({batch, features}, std::to_string(step) + "." + std::to_string(member)));
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < batch; ++i) labels.push_back((step + member + i) % classes);
    labels_.copy_from(tensor::from(labels, {batch}));
  }
  variable loss_of(const variable& output) const { return cross_entropy(output, labels_, 1.0 / batch).loss; }
  variable own_loss() { return loss_of(model_.forward({samples_})); }
  void captured_work() { own_loss().backward(replicated->initial_gradient()); }
  void replicated_pass() { replicated->backward(loss_of(replicated->forward({samples_}))); }
  void step_weights(int step) { optimizer_->apply(static_cast<std::uint64_t>(step)); }
  captured_pass pass(std::function<void()> work) {
    return {group_.device(), std::move(work), model_.parameters()};
  }
  /// Steps of passes that are not captured.
  void train(int first_step) {
    for (int step = first_step; step < num_steps; ++step) {
      load_batch(step);
      replicated_pass();
      step_weights(step);
    }
  }
  std::vector<tensor> weights() {
    optimizer_->synchronize();
    std::vector<tensor> result;
    for (auto* each : model_.parameters()) result.push_back(each->value().to({}));
    return result;
  }
  nn::Sequential& model() { return model_; }

  std::optional<DataParallel> replicated;

 private:
  communicator& group_;
  nn::Sequential model_;
  tensor samples_, labels_;
  std::unique_ptr<optim::optimizer_state> optimizer_;
};

/// What `train` makes of two members' weights, in one dtype of products. Both must have the same.
std::vector<tensor> weights_after(dtype type, const std::function<void(trained_model&)>& train) {
  std::vector<std::vector<tensor>> found(2);
  auto failures = run_nccl_members(2, [&](communicator& all, collective::store&) {
    autocast mixed(type);
    trained_model one(all);
    train(one);
    found[static_cast<std::size_t>(all.rank())] = one.weights();
  });
  CHECK(failures == std::vector<std::string>(2));
  check_nccl_is_unharmed();
  REQUIRE(found[0].size() == 4);
  for (std::size_t i = 0; i < found[0].size(); ++i) CHECK(same_bits(found[0][i], found[1].at(i)));
  return found[0];
}

void check_same(const std::vector<tensor>& got, const std::vector<tensor>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(got.at(i), expected[i]));
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("expected " + what);
}

std::string refusal_of(captured_pass& pass) {
  try {
    pass.run();
  } catch (const std::logic_error& refused) {
    return refused.what();
  }
  return "no refusal";
}

void expect_refused(captured_pass& pass, const std::string& name) {
  auto text = refusal_of(pass);
  expect(text.starts_with("[" + name + "] expected a call outside of captured_step's work"),
         name + ": " + text);
  expect(text.find("call sync_gradients() after each run") != std::string::npos, "what to do, got " + text);
  expect(!pass.is_captured(), "nothing captured");
}

}  // namespace

TEST_CASE(
    "captured passes whose gradients are reduced after each run train to the same bits as uncaptured ones") {
  for (auto type : {dtype::f32, dtype::bf16}) {
    auto captured = weights_after(type, [](trained_model& one) {
      auto pass = one.pass([&] { one.captured_work(); });
      for (int step = 0; step < num_steps; ++step) {
        one.load_batch(step);
        pass.run();
        one.replicated->sync_gradients();
        one.step_weights(step);
      }
      expect(pass.is_captured(), "a captured pass");
    });
    check_same(captured, weights_after(type, [](trained_model& one) { one.train(0); }));
  }
}

TEST_CASE("a DataParallel's pass is refused during capture, and training continues unaffected") {
  struct refused {
    const char* name;
    void (*work)(trained_model&);
  };
  const refused cases[] = {
      {"DataParallel::forward", [](trained_model& one) { one.replicated_pass(); }},
      {"DataParallel::backward", [](trained_model& one) { one.replicated->backward(one.own_loss()); }},
      {"DataParallel::sync_gradients", [](trained_model& one) {
         one.captured_work();
         one.replicated->sync_gradients();
       }}};
  for (auto type : {dtype::f32, dtype::bf16}) {
    auto expected = weights_after(type, [](trained_model& one) { one.train(0); });
    for (const auto& each : cases) {
      CAPTURE(each.name);
      check_same(weights_after(type,
                               [&](trained_model& one) {
                                 auto pass = one.pass([&] { each.work(one); });
                                 one.load_batch(0);
                                 pass.run();  // no capture yet
                                 one.step_weights(0);
                                 one.weights();
                                 // What is captured converts the weights again.
                                 for (auto* parameter : one.model().parameters()) parameter->mark_changed();
                                 expect_refused(pass, each.name);
                                 one.train(1);
                               }),
                 expected);
    }
  }
}

TEST_CASE("sync_parameters is refused during capture") {
  weights_after(dtype::f32, [](trained_model& one) {
    auto pass = one.pass([&] { one.replicated->sync_parameters(); });
    pass.run();
    expect_refused(pass, "DataParallel::sync_parameters");
  });
}

TEST_CASE("a captured pass belongs to one of a DataParallel's replicas") {
  collective::memory_store place;
  auto group = nccl_member(place, 1, 0);
  trained_model one(*group, 2);
  auto pass = one.pass([&] { one.captured_work(); });
  for (int replica = 0; replica < 2; ++replica) {  // the second one is captured
    one.load_batch(0, replica);
    pass.run();
    one.replicated->sync_gradients();
  }
  one.step_weights(0);
  CHECK(pass.is_captured());
  auto told = refusal_of(pass);
  CHECK(told.starts_with("[captured_pass] expected \"weight\" and its gradient in the memory in which"));
  CHECK(told.find("one for each of a DataParallel's replicas") != std::string::npos);
}

TEST_CASE(
    "one captured pass for each of a DataParallel's replicas trains to the same bits as uncaptured ones") {
  std::vector<std::vector<tensor>> found;
  for (bool is_captured : {false, true}) {
    collective::memory_store place;
    auto group = nccl_member(place, 1, 0);
    trained_model one(*group, 2);
    captured_pass passes[] = {one.pass([&] { one.captured_work(); }), one.pass([&] { one.captured_work(); })};
    for (int step = 0; step < num_steps; ++step) {
      for (int replica = 0; replica < 2; ++replica) {
        one.load_batch(step, replica);
        is_captured ? passes[replica].run() : one.captured_work();
        one.replicated->sync_gradients();
      }
      one.step_weights(step);
    }
    CHECK(passes[1].is_captured() == is_captured);
    found.push_back(one.weights());
  }
  check_same(found[1], found[0]);
}

TEST_CASE("a captured pass in bf16 is refused after weights were loaded, and allowed after optimizer steps") {
  collective::memory_store place;
  auto group = nccl_member(place, 1, 0);
  trained_model one(*group);
  auto pass = one.pass([&] {
    autocast mixed(dtype::bf16);
    one.captured_work();
  });
  for (int step = 0; step < num_steps; ++step) {
    one.load_batch(step);
    pass.run();
    one.replicated->sync_gradients();
    one.step_weights(step);
  }
  CHECK(pass.is_captured());
  one.weights();  // waits for the last step
  for (auto* parameter : one.model().parameters()) {
    parameter->value().copy_from(parameter->value().clone());
    parameter->mark_changed();
  }
  auto told = refusal_of(pass);
  CHECK(told.starts_with("[captured_pass] expected \"weight\" changed by optimizers only"));
}
