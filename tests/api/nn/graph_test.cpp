#include "troupe/nn/graph.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/bits.hpp"
#include "support/models/graph_models.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/nn/checkpoint.hpp"
#include "troupe/nn/embedding.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/tied_linear.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/safetensors/safetensors.hpp"

namespace nn = troupe::nn;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;
using namespace troupe;
using troupe::testing::random_tensor;
using troupe::testing::residual_network;
using troupe::testing::same_bits;
using troupe::testing::small_unet;

namespace {

std::vector<named_tensor> gradients_of(nn::Module& model) {
  std::vector<named_tensor> all;
  for (const auto& [name, target] : model.named_parameters())
    all.push_back({name, target->has_gradient ? target->gradient().clone() : tensor()});
  return all;
}

/// Names, initial values, output and gradients.
std::vector<named_tensor> everything(nn::Module& model, const tensor& input) {
  model.materialize(7);
  auto all = model.state_dict();
  for (auto& each : all) each.value = each.value.clone();
  auto output = model({input});
  output.backward(random_tensor(output.value.shape(), "gradient"));
  all.push_back({"output", output.value});
  for (auto& each : gradients_of(model)) all.push_back(each);
  return all;
}

/// One linear layer a branch.
nn::Graph two_branches() {
  nn::Graph model;
  auto x = model.input();
  auto a = model.add("a", nn::Linear(4, 3), x);
  auto b = model.add("b", nn::Linear(4, 3), x);
  model.output(model.add("product", nn::Multiply(), a, model.add("tanh", nn::Tanh(), b)));
  return model;
}

/// The same by hand.
class TwoBranches : public nn::module_of<TwoBranches> {
 public:
  variable forward(const variable& x) override { return a_(x) * tanh(b_(x)); }
  void each_child(const child_visitor& visit) override {
    visit("a", a_);
    visit("b", b_);
  }

 private:
  nn::Linear a_{4, 3}, b_{4, 3};
};

/// Its input, and twice that: the first output is the same variable.
class Both : public nn::multi_module_of<Both> {
 public:
  int num_inputs() const override { return 1; }
  int num_outputs() const override { return 2; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override {
    return {inputs[0], inputs[0] * 2.0F};
  }
};

/// Says that it has two outputs.
class GivesOne : public nn::multi_module_of<GivesOne> {
 public:
  int num_inputs() const override { return 1; }
  int num_outputs() const override { return 2; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override { return inputs; }
};

}  // namespace

TEST_CASE("a graph has the names, values and gradients of a module written by hand") {
  auto graph = two_branches();
  TwoBranches by_hand;
  auto input = random_tensor({5, 4}, "input");
  CHECK(same_bits(everything(graph, input), everything(by_hand, input)));
}

TEST_CASE("a chain has the names and bits of its Sequential, fused activations and tied weights included") {
  auto check = [](const nn::Sequential& model, const tensor& input) {
    nn::Sequential chain(model);
    nn::Graph graph(model);
    CHECK(graph.size() == chain.size());
    CHECK(same_bits(everything(graph, input), everything(chain, input)));
  };
  check(nn::Sequential(nn::Linear(4, 6), nn::ReLU(), nn::Dropout(0), nn::Linear(6, 3)),
        random_tensor({5, 4}, "input"));
  nn::Sequential tied;
  tied.push_back("wte", nn::Embedding(5, 4));
  tied.push_back("mid", nn::Linear(4, 4));
  tied.push_back("head", nn::TiedLinear(4, 5, "wte.weight"));
  check(tied, tensor::from<std::int64_t>(std::vector<std::int64_t>{0, 3, 4}, {3}));
  auto input = random_tensor({2, 2}, "input");
  CHECK(same_bits(nn::Graph(nn::Sequential())({input}).value, input));
}

TEST_CASE("modules with several outputs give each a value, and unused ones are allowed") {
  nn::Graph model;
  auto parts = model.add("split", nn::Split({1, 2, 3}), model.input());
  auto first = model.add("first", nn::Linear(1, 2), parts[0]);
  model.output(model.add("sum", nn::Add(), first, parts[1]));
  model.materialize(3);
  auto x = leaf(random_tensor({4, 6}, "input"));
  auto y = model(x);
  auto expected = add(linear(slice({x.value}, 1, 0, 1), *model.named_parameters()[0].target,
                             model.named_parameters()[1].target),
                      slice({x.value}, 1, 1, 2));
  CHECK(same_bits(y.value, expected.value));
  y.backward(tensor::full({4, 2}, 1));
  auto gradient = x.gradient();
  for (std::size_t row = 0; row < 4; ++row) {
    CHECK(gradient.values<float>()[row * 6 + 1] == 1);
    CHECK(gradient.values<float>()[row * 6 + 3] == 0);
  }
}

TEST_CASE("a graph is a module with several inputs and outputs, and a node of another graph") {
  nn::Graph inner;
  auto a = inner.input("a"), b = inner.input("b");
  auto sum = inner.add("sum", nn::Add(), a, b);
  inner.output({sum, inner.add("linear", nn::Linear(3, 2), sum)});
  CHECK(inner.num_inputs() == 2);
  CHECK(inner.num_outputs() == 2);
  nn::Graph outer;
  auto x = outer.input();
  auto both = outer.add("inner", inner, x, outer.add("twice", nn::Add(), x, x));
  outer.output(outer.add("joined", nn::Concat(), both[0], both[1]));
  outer.materialize(1);
  CHECK(outer.named_parameters()[0].name == "inner.linear.weight");
  auto y = outer(leaf(random_tensor({2, 3}, "input")));
  CHECK(y.value.shape() == shape{2, 5});
  CHECK_THROWS_MATCHES(inner(leaf(random_tensor({2, 3}, "input"))), std::logic_error,
                       MessageMatches(ContainsSubstring("one input and one output, got one with 2 and 2") &&
                                      ContainsSubstring("nn::Graph")));
}

TEST_CASE("a module that returns its input counts as a node: gradients of all uses are added") {
  nn::Graph model;
  auto both = model.add("both", Both(), model.input());
  auto again = model.add("again", Both(), both[0]);
  model.output(model.add("sum", nn::Add(), {both[0], both[1], again[0], again[1], both[0]}));
  auto x = leaf(random_tensor({3}, "input"));
  auto y = model(x);
  y.backward(tensor::full({3}, 1));
  CHECK(same_bits(x.gradient(), tensor::full({3}, 1 + 2 + 1 + 2 + 1)));
}

TEST_CASE("copies of a graph are independent, keep their wiring, and tie their own weights") {
  nn::Graph model;
  auto embedded = model.add("wte", nn::Embedding(5, 4), model.input());
  auto sum = model.add("sum", nn::Add(), embedded, model.add("linear", nn::Linear(4, 4), embedded));
  model.output(model.add("head", nn::TiedLinear(4, 5, "wte.weight"), sum));
  model.materialize(1);
  auto copy = model;
  auto tokens = tensor::from<std::int64_t>(std::vector<std::int64_t>{0, 3, 4}, {3});
  auto before = model({tokens}).value;
  CHECK(same_bits(copy({tokens}).value, before));
  for (auto& each : model.state_dict()) each.value.fill_zero();
  CHECK(same_bits(copy({tokens}).value, before));
  CHECK(copy.named_parameters().size() == 3);
  CHECK(same_bits(std::dynamic_pointer_cast<nn::Graph>(copy.clone())->state_dict(), copy.state_dict()));
}

TEST_CASE("residual networks and U-Nets train on one device, and load what they saved") {
  for (auto [model, features] : {std::pair(residual_network(3), 36), std::pair(small_unet(3), 64)}) {
    model.materialize(5);
    auto optimizer = optim::Adam({.lr = 0.01})(model.named_parameters());
    auto samples = random_tensor({12, features}, "samples");
    std::vector<std::int64_t> classes;
    for (std::int64_t row = 0; row < 12; ++row) classes.push_back(row % 3);
    auto targets = tensor::from(classes, {12});
    double first = 0, last = 0;
    for (std::uint64_t step = 0; step < 60; ++step) {
      auto result = cross_entropy(model({samples}), targets, 1.0 / 12);
      result.loss.backward();
      optimizer->apply(step);
      (step == 0 ? first : last) = result.loss_sum;
    }
    CHECK(last < 0.5 * first);
    auto file = std::filesystem::temp_directory_path() / ("graph_test." + std::to_string(features));
    write_safetensors(file, model.state_dict());
    auto loaded = model;
    loaded.materialize(6);
    loaded.load_state_dict(read_safetensors(file).tensors);
    std::filesystem::remove(file);
    no_grad only_values;
    model.eval();
    loaded.eval();
    CHECK(same_bits(model({samples}).value, loaded({samples}).value));
  }
}

TEST_CASE("activations of a graph are recomputed under a checkpoint with the same bits") {
  auto plain = residual_network(3);
  nn::Checkpoint checkpointed{nn::Graph(plain)};
  auto input = random_tensor({4, 36}, "input");
  CHECK(same_bits(everything(plain, input), everything(checkpointed, input)));
}

TEST_CASE("mistakes in building a graph say what was expected, what came and what to do") {
  auto expect = [](auto build, auto... parts) {
    nn::Graph model;
    auto x = model.input();
    CHECK_THROWS_MATCHES(build(model, x), std::invalid_argument,
                         MessageMatches((StartsWith("[Graph") && ... && ContainsSubstring(parts))));
  };
  using value = const nn::graph_value&;
  expect([](nn::Graph& g, value) { g.add("a", nn::Linear(2, 2), "b"); }, "added before, for node 'a': input",
         "got 'b'", "Add nodes after");
  // A cycle would need a value of a later node.
  expect(
      [](nn::Graph& g, value x) {
        g.add("a", nn::Add(), x, "b");
        g.add("b", nn::ReLU(), "a");
      },
      "got 'b'");
  expect([](nn::Graph& g, value x) { g.add("a", nn::Linear(2, 2), x, x); }, "1 input of node 'a'", "got 2");
  expect([](nn::Graph& g, value) { g.add("a", nn::Add(), std::vector<nn::graph_value>()); },
         "at least one input of node 'a'", "got 0");
  expect([](nn::Graph& g, value x) { g.add("input", nn::Add(), x); }, "nothing else", "'input'");
  expect([](nn::Graph& g, value x) { g.add("", nn::Add(), x); }, "nothing else", "''");
  expect([](nn::Graph& g, value x) { g.add("a", nn::Add(), g.add("a", nn::ReLU(), x)); }, "no other child",
         "a");
  expect([](nn::Graph& g, value x) { g.add("a", std::shared_ptr<nn::Module>(), {x}); }, "node 'a'", "null");
  expect([](nn::Graph& g, value x) { g.add("a", nn::ReLU(), x[1]); }, "'input', which has one output",
         "input[1]");
  expect(
      [](nn::Graph& g, value x) {
        g.add("b", nn::ReLU(), g.add("a", nn::Split({1, 1}), x));
      },
      "one of the 2 outputs of 'a'", "a[0] to a[1]", "got a");
  expect(
      [](nn::Graph& g, value x) {
        g.add("b", nn::ReLU(), g.add("a", nn::Split({1, 1}), x)[2]);
      },
      "a[0] to a[1]", "got a[2]");
  expect([](nn::Graph& g, value x) { g.add("a", nn::Graph(), x); }, "an output as node 'a'",
         "call its output() before");
  expect(
      [](nn::Graph& g, value x) {
        g.add("a", nn::ReLU(), g.add("b", nn::ReLU(), x));
        g.input("mask");
        g.output(g.add("c", nn::ReLU(), x));
      },
      "every input and node to lead to an output", "mask, b, a without one", "leave them out");
  expect(
      [](nn::Graph& g, value x) {
        g.output(x);
        g.add("c", nn::ReLU(), x);
      },
      "not complete", "call it last");
  auto shared = std::make_shared<nn::Linear>(2, 2);
  expect(
      [&](nn::Graph& g, value x) {
        g.add("a", shared, {x});
        g.add("b", shared, {x});
      },
      "each module with parameters once", "a.weight and b.weight", "TiedLinear");
  CHECK_THROWS_MATCHES(nn::Graph().forward_all({}), std::logic_error,
                       MessageMatches(ContainsSubstring("call output()")));
}

TEST_CASE("errors in a node name it") {
  nn::Graph model;
  auto parts = model.add("gives_one", GivesOne(), model.add("linear", nn::Linear(2, 2), model.input()));
  model.output(model.add("sum", nn::Add(), parts[0], parts[1]));
  model.materialize(1);
  CHECK_THROWS_MATCHES(model({random_tensor({2, 2}, "x")}), std::logic_error,
                       MessageMatches(StartsWith("in layer gives_one: ") && ContainsSubstring("2 outputs") &&
                                      ContainsSubstring("got 1")));
  CHECK_THROWS_MATCHES(model({random_tensor({2, 3}, "x")}), std::invalid_argument,
                       MessageMatches(StartsWith("in layer linear: ")));
}

TEST_CASE("values of different floating dtypes are concatenated as f32") {
  nn::Concat both(0);
  auto a = random_tensor({2}, "a");
  auto y = both({variable{a}, variable{cast(a, dtype::bf16)}}).front().value;
  CHECK(y.dtype() == dtype::f32);
  CHECK(same_bits(y.rows(0, 2), a));
}
