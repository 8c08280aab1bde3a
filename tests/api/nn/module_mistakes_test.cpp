// Mistakes in user-defined modules, and the error of each.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/batch_norm.hpp"
#include "troupe/nn/checkpoint.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/embedding.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/norm.hpp"
#include "troupe/nn/reshape.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/transformer_block.hpp"

namespace nn = troupe::nn;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;
using troupe::tensor;
using troupe::variable;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

/// Children of its own choice, called one after the other.
class Parts : public nn::module_of<Parts> {
 public:
  Parts(std::vector<std::string> names, std::vector<std::shared_ptr<nn::Module>> children)
      : names_(std::move(names)), children_(std::move(children)) {}
  Parts(const Parts& other) : module_of(other), names_(other.names_) {
    for (const auto& each : other.children_) children_.push_back(each->clone());
  }
  variable forward(const variable& input) override {
    auto value = input;
    for (const auto& each : children_) value = (*each)(value);
    return value;
  }
  void each_child(const child_visitor& visit) override {
    for (std::size_t i = 0; i < names_.size(); ++i) visit(names_[i], *children_[i]);
  }

 private:
  std::vector<std::string> names_;  ///< may be fewer than there are children
  std::vector<std::shared_ptr<nn::Module>> children_;
};

std::shared_ptr<nn::Module> linear(std::int64_t in, std::int64_t out) {
  return std::make_shared<nn::Linear>(in, out);
}

/// Throws an error of a type of its own.
struct sensor_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class Error>
class Throws : public nn::module_of<Throws<Error>> {
 public:
  variable forward(const variable&) override { throw Error("the sensor is unplugged"); }
};

/// Blocks in a list, each with an MLP that fails in its first layer.
nn::Sequential nested(std::shared_ptr<nn::Module> inner) {
  nn::Sequential mlp(std::move(inner), nn::ReLU());
  nn::Sequential blocks(linear(4, 4), nn::ReLU(), linear(4, 4),
                        Parts({"norm", "mlp"}, {std::make_shared<nn::LayerNorm>(4),
                                                std::make_shared<nn::Sequential>(std::move(mlp))}));
  nn::Sequential model;
  model.push_back("blocks", std::move(blocks));
  return model;
}

variable some_input() { return {random_tensor({3, 4}, "x")}; }

}  // namespace

TEST_CASE("an error in forward names the layer's path, with its type and its text") {
  auto model = nested(linear(5, 4));
  model.materialize(1);
  CHECK_THROWS_MATCHES(model.forward(some_input()), std::invalid_argument,
                       MessageMatches(StartsWith("in layer blocks.3.mlp.0: [linear] expected")));
  auto refuses = nested(std::make_shared<Throws<troupe::bad_input>>());
  refuses.materialize(1);
  CHECK_THROWS_MATCHES(refuses.forward(some_input()), troupe::bad_input,
                       MessageMatches(StartsWith("in layer blocks.3.mlp.0: the sensor is unplugged")));
  auto fails = nested(std::make_shared<Throws<std::runtime_error>>());
  fails.materialize(1);
  CHECK_THROWS_MATCHES(fails.forward(some_input()), std::runtime_error,
                       MessageMatches(StartsWith("in layer blocks.3.mlp.0: the sensor")));
}

TEST_CASE("an exception of a user-defined type keeps its type") {
  auto model = nested(std::make_shared<Throws<sensor_error>>());
  model.materialize(1);
  CHECK_THROWS_MATCHES(model.forward(some_input()), sensor_error,
                       MessageMatches(StartsWith("the sensor is unplugged")));
}

TEST_CASE("an error in a layer of a transformer names the layer's path") {
  auto model =
      nn::gpt_layers({.vocabulary = 16, .context = 8, .features = 8, .num_layers = 2, .num_heads = 2});
  model.materialize(1);
  auto block = model[2];  // h.1
  CHECK_THROWS_WITH((*block)({random_tensor({1, 8, 9}, "x")}), StartsWith("in layer h.1.ln_1: "));
  nn::Checkpoint kept(nn::TransformerBlock({.features = 8, .num_heads = 2}));
  kept.materialize(1, "blocks.0.");
  CHECK_THROWS_WITH(kept({random_tensor({1, 8, 9}, "x")}), StartsWith("in layer blocks.0.ln_1: "));
}

TEST_CASE("the error of a module that was not materialized says what to do, whichever layer is first") {
  auto says = [](nn::Module& module, const tensor& input) {
    CHECK_THROWS_WITH(module.forward({input}), ContainsSubstring("materialize(seed)"));
  };
  nn::Linear dense(4, 4);
  says(dense, random_tensor({3, 4}, "x"));
  nn::LayerNorm norm(4);
  says(norm, random_tensor({3, 4}, "x"));
  nn::RMSNorm rms(4);
  says(rms, random_tensor({3, 4}, "x"));
  nn::Embedding table(4, 4);
  says(table, tensor::from(std::vector<std::int64_t>{0, 1}, {2}));
  nn::Conv2d filter(2, 2, 3);
  says(filter, random_tensor({1, 2, 5, 5}, "x"));
  nn::BatchNorm2d statistics(2);
  says(statistics, random_tensor({2, 2, 3, 3}, "x"));
  statistics.eval();
  says(statistics, random_tensor({2, 2, 3, 3}, "x"));
}

TEST_CASE("a child missing from each_child is found at its first use") {
  nn::Sequential model(Parts({"first"}, {linear(4, 4), linear(4, 4)}));
  model.materialize(1);
  CHECK_THROWS_WITH(model.forward(some_input()), StartsWith("in layer 0: ") &&
                                                     ContainsSubstring("weight[4, 4]") &&
                                                     ContainsSubstring("each_child"));
}

TEST_CASE("two children of one name are refused, and the name is given") {
  Parts twice({"mlp", "mlp"}, {linear(4, 4), linear(4, 4)});
  CHECK_THROWS_WITH(twice.materialize(1, "3."), ContainsSubstring("3.mlp.weight twice"));
  CHECK_THROWS_WITH(twice.named_parameters(), ContainsSubstring("mlp.weight twice"));
  Parts statistics({"norm", "norm"},
                   {std::make_shared<nn::BatchNorm2d>(2), std::make_shared<nn::BatchNorm2d>(2)});
  CHECK_THROWS_AS(statistics.named_buffers(), std::invalid_argument);
  Parts silent({"act", "act"}, {std::make_shared<nn::ReLU>(), std::make_shared<nn::ReLU>()});
  silent.materialize(1);  // nothing to be confused
}

TEST_CASE("a module used in two places of a model is refused with both names") {
  auto shared = linear(4, 4);
  Parts twice({"a", "b"}, {shared, shared});
  CHECK_THROWS_WITH(twice.materialize(1), ContainsSubstring("the same as a.weight and b.weight"));
  nn::Sequential model;
  model.push_back("a", nn::Sequential(shared));
  CHECK_THROWS_WITH(
      model.push_back("b", nn::Sequential(nn::ReLU(), shared)),
      ContainsSubstring("the same as a.0.weight and b.1.weight") && ContainsSubstring("TiedLinear"));
}

namespace {

/// Its child is held by pointer, and its copies hold the same one.
class Sharing : public nn::module_of<Sharing> {
 public:
  variable forward(const variable& input) override { return (*child_)(input); }
  void each_child(const child_visitor& visit) override { visit("child", *child_); }

 private:
  std::shared_ptr<nn::Linear> child_ = std::make_shared<nn::Linear>(4, 4);
};

}  // namespace

TEST_CASE("a clone that would share a child is refused with the child's name") {
  Sharing module;
  CHECK_THROWS_WITH(module.clone(),
                    ContainsSubstring("shares child") && ContainsSubstring("copy constructor"));
  nn::Sequential model{nn::ReLU(), Sharing()};
  CHECK_THROWS_AS(nn::Sequential(model), std::logic_error);
}

TEST_CASE("a copy by value shares nothing, whatever the module") {
  auto holds = [](auto module) {
    module.materialize(1);
    auto before = module.state_dict();
    for (auto& each : before) each.value = each.value.clone();
    auto copy = module;
    CHECK(same_bits(copy.state_dict(), before));
    for (auto& each : copy.state_dict()) each.value.fill_zero();
    CHECK(same_bits(module.state_dict(), before));
    auto assigned = module;
    assigned.materialize(2);
    assigned = module;
    for (auto& each : assigned.state_dict()) each.value.fill_zero();
    CHECK(same_bits(module.state_dict(), before));
  };
  holds(nn::Linear(4, 4));
  holds(nn::Sequential(nn::Linear(4, 4), nn::ReLU()));
  holds(nn::BatchNorm2d(3));
  holds(nn::Checkpoint(nn::Linear(4, 4)));
  holds(nn::TransformerBlock({.features = 8, .num_heads = 2}));
  holds(nn::GPT({.vocabulary = 16, .context = 8, .features = 8, .num_layers = 1, .num_heads = 2}));
}

TEST_CASE("impossible extents of layers are refused, however large or small") {
  constexpr auto huge = std::int64_t{1} << 62, lowest = std::numeric_limits<std::int64_t>::min();
  for (auto wrong : {std::int64_t{-1}, std::int64_t{0}, huge, lowest}) {
    INFO(wrong);
    CHECK_THROWS_AS(nn::Linear(wrong, 4), std::invalid_argument);
    CHECK_THROWS_AS(nn::Linear(4, wrong), std::invalid_argument);
    CHECK_THROWS_AS(nn::Embedding(wrong, 4), std::invalid_argument);
    CHECK_THROWS_AS(nn::LayerNorm(wrong), std::invalid_argument);
    CHECK_THROWS_AS(nn::RMSNorm(wrong), std::invalid_argument);
    CHECK_THROWS_AS(nn::MultiheadAttention(wrong, 1), std::invalid_argument);
    CHECK_THROWS_AS(nn::TransformerBlock({.features = wrong, .num_heads = 1}), std::invalid_argument);
    CHECK_THROWS_AS(nn::Conv2d(wrong, 4, 3), std::invalid_argument);
    CHECK_THROWS_AS(nn::Conv2d(4, 4, wrong), std::invalid_argument);
  }
  CHECK_THROWS_AS(nn::Conv2d(4, 4, std::int64_t{1} << 32), std::invalid_argument);
  CHECK_THROWS_AS(nn::Reshape({-1, 4}), std::invalid_argument);
  nn::Reshape wrong({5, 5});
  CHECK_THROWS_AS(wrong.forward(some_input()), std::invalid_argument);
}

TEST_CASE("materializing a model too large for memory is an error with the model's size") {
  nn::Embedding table(std::int64_t{1} << 40, 1 << 10);
  CHECK_THROWS_WITH(table.materialize(1),
                    ContainsSubstring("f32[1099511627776, 1024]") && ContainsSubstring("no memory"));
}

TEST_CASE("batches without rows are computed, or refused with a clear error") {
  nn::Sequential model(nn::Linear(4, 8), nn::ReLU(), nn::LayerNorm(8), nn::Linear(8, 2));
  model.materialize(1);
  auto survives = [](auto call) {
    try {
      call();
    } catch (const std::exception& problem) {
      CHECK(std::string(problem.what()).find("expected") != std::string::npos);
    }
  };
  survives([&] {
    auto y = model.forward({tensor::zeros({0, 4})});
    CHECK(y.value.shape() == troupe::shape{0, 2});
    y.backward(tensor::zeros({0, 2}));
    for (auto* each : model.parameters())
      for (auto element : each->gradient().values<float>()) CHECK(element == 0);
  });
  nn::Conv2d filter(2, 2, 3);
  filter.materialize(1);
  survives([&] { filter.forward({tensor::zeros({0, 2, 5, 5})}).backward(tensor::zeros({0, 2, 3, 3})); });
  nn::BatchNorm2d statistics(2);
  statistics.materialize(1);
  survives([&] { statistics.forward({tensor::zeros({0, 2, 3, 3})}); });
  nn::Embedding table(4, 4);
  table.materialize(1);
  survives([&] { table.forward({tensor::zeros({0}, troupe::dtype::i64)}).backward(tensor::zeros({0, 4})); });
  nn::TransformerBlock block({.features = 8, .num_heads = 2});
  block.materialize(1);
  survives([&] { block.forward({tensor::zeros({0, 4, 8})}).backward(tensor::zeros({0, 4, 8})); });
  survives([&] { block.forward({tensor::zeros({2, 0, 8})}).backward(tensor::zeros({2, 0, 8})); });
  auto labels = tensor::zeros({0}, troupe::dtype::i64);
  survives([&] { cross_entropy(troupe::leaf(tensor::zeros({0, 3})), labels, 1).loss.backward(); });
  survives([&] { mse_loss(troupe::leaf(tensor::zeros({0, 3})), tensor::zeros({0, 3}), 1).loss.backward(); });
}
