#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/to_float.hpp"

namespace nn = troupe::nn;
using Catch::Matchers::ContainsSubstring;
using troupe::tensor;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

/// A copy constructor of its own, which leaves out what it inherits.
class Forgetful : public nn::module_of<Forgetful> {
 public:
  Forgetful() = default;
  Forgetful(const Forgetful& other) : module_of(), inner(std::make_shared<nn::Linear>(*other.inner)) {}
  troupe::variable forward(const troupe::variable& x) override { return inner->forward(x); }
  void each_child(const child_visitor& visit) override { visit("inner", *inner); }
  std::shared_ptr<nn::Linear> inner = std::make_shared<nn::Linear>(2, 2);
};

nn::Sequential small_model() {
  return nn::Sequential(nn::Flatten(), nn::Linear(6, 5), nn::ReLU(), std::make_shared<nn::Linear>(5, 2));
}

std::vector<std::string> names_of(nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& each : module.named_parameters()) names.push_back(each.name);
  return names;
}

std::vector<troupe::named_tensor> weights_of(nn::Module& module) {
  std::vector<troupe::named_tensor> weights;
  for (const auto& each : module.named_parameters()) weights.push_back({each.name, each.target->value()});
  return weights;
}

}  // namespace

TEST_CASE("names, numbers and costs are known before there is memory for parameters") {
  auto model = small_model();
  CHECK(names_of(model) == std::vector<std::string>{"1.weight", "1.bias", "3.weight", "3.bias"});
  CHECK(model.num_parameters() == 6 * 5 + 5 + 5 * 2 + 2);
  CHECK(model.cost() == model[1]->cost() + model[3]->cost());
  CHECK(model[1]->cost() > model[3]->cost());
  for (auto* each : model.parameters()) CHECK_FALSE(each->value().defined());
  CHECK_THROWS_WITH(model.forward({random_tensor({2, 6}, "x"), nullptr}), ContainsSubstring("materialize"));
}

TEST_CASE("initial weights depend on seed and name only") {
  auto model = small_model(), again = small_model(), other = small_model();
  model.materialize(1, "");
  again.materialize(1, "");
  other.materialize(2, "");
  CHECK(same_bits(weights_of(model), weights_of(again)));
  CHECK_FALSE(same_bits(weights_of(model), weights_of(other)));
  nn::Linear alone(6, 5);
  alone.materialize(1, "1.");
  CHECK(same_bits(alone.parameters()[0]->value(), model.parameters()[0]->value()));
}

TEST_CASE("linear starts uniform within one over the root of its inputs, with zero gradients") {
  nn::Linear layer(400, 300);
  layer.materialize(3, "");
  for (auto* each : layer.parameters()) {
    auto values = each->value().values<float>();
    CHECK(*std::ranges::max_element(values) <= 0.05F);
    CHECK(*std::ranges::max_element(values) > 0.045F);
    CHECK(*std::ranges::min_element(values) >= -0.05F);
    CHECK(*std::ranges::min_element(values) < -0.045F);
    CHECK(same_bits(each->gradient(), tensor::zeros(each->value().shape())));
  }
}

TEST_CASE("a sequential runs its children in order") {
  auto model = small_model();
  model.materialize(1, "");
  auto x = random_tensor({3, 2, 3}, "x");
  troupe::variable value{x, nullptr};
  for (int i = 0; i < model.size(); ++i) value = model[i]->forward(value);
  auto y = model.forward({x}).value;
  CHECK(y.shape() == troupe::shape{3, 2});
  CHECK(same_bits(y, value.value));
}

TEST_CASE("a clone has its own weights") {
  auto model = small_model();
  model.materialize(1, "");
  auto copy = model.clone();
  copy->materialize(2, "");
  auto expected = small_model();
  expected.materialize(1, "");
  CHECK(same_bits(weights_of(model), weights_of(expected)));
  CHECK(names_of(*copy) == names_of(model));
}

TEST_CASE("a clone has the elements of what it was cloned from, in memory of its own") {
  auto model = small_model();
  auto same = small_model();
  for (auto* each : {&model, &same}) each->materialize(1, "");
  auto copy = model.clone();
  CHECK(same_bits(weights_of(*copy), weights_of(same)));
  for (auto& each : copy->state_dict()) each.value.fill_zero();
  CHECK(same_bits(weights_of(model), weights_of(same)));
  copy->forward({random_tensor({3, 2, 3}, "x")}).backward(random_tensor({3, 2}, "dy"));
  for (auto* each : model.parameters()) CHECK_FALSE(each->has_gradient);
}

TEST_CASE("sequentials nest, and names say where") {
  nn::Sequential model(nn::Linear(4, 4), nn::Sequential(nn::ReLU(), nn::Linear(4, 2)));
  CHECK(model.size() == 2);
  CHECK(names_of(model) == std::vector<std::string>{"0.weight", "0.bias", "1.1.weight", "1.1.bias"});
  auto copy = model;
  CHECK(copy.size() == 2);
  CHECK(copy[0] != model[0]);
}

TEST_CASE("bytes are scaled to the unit interval") {
  nn::ToFloat layer;
  auto y = layer.forward({tensor::from(std::vector<std::uint8_t>{0, 255}, {2})}).value;
  CHECK(y.values<float>()[0] == 0);
  CHECK(std::abs(y.values<float>()[1] - 1) < 1e-6);
}

TEST_CASE("invalid layers are refused") {
  nn::Sequential model;
  CHECK_THROWS_AS(nn::Linear(0, 3), std::invalid_argument);
  CHECK_THROWS_AS(nn::Linear(3, -1), std::invalid_argument);
  CHECK_THROWS_AS(model.push_back(std::shared_ptr<nn::Module>()), std::invalid_argument);
  auto shared = std::make_shared<nn::Linear>(3, 3);
  model.push_back(shared);
  CHECK_THROWS_AS(model.push_back(shared), std::invalid_argument);
  CHECK_THROWS_AS(model[1], std::out_of_range);
}

TEST_CASE("a module moves to the device of its inputs, and a missing device is refused") {
  auto model = small_model();
  model.materialize(1);
  auto before = weights_of(model);
  model.to({});
  CHECK(same_bits(weights_of(model), before));
  CHECK(model.parameters()[0]->value().device() == troupe::device{});
  CHECK_THROWS_WITH(model.to({troupe::device::kind::cuda, 99}), ContainsSubstring("cuda:99 is not there"));
  CHECK(same_bits(weights_of(model), before));
}

TEST_CASE("a clone has the modes of its original, each of its own, whatever its copy constructor does") {
  nn::Sequential model(Forgetful(), nn::Sequential(nn::Linear(2, 2), nn::Linear(2, 2)));
  model[0]->eval();
  dynamic_cast<Forgetful&>(*model[0]).inner->train();
  dynamic_cast<nn::Sequential&>(*model[1])[1]->eval();
  auto copy = std::dynamic_pointer_cast<nn::Sequential>(model.clone());
  CHECK(copy->is_training());
  CHECK_FALSE((*copy)[0]->is_training());
  CHECK(dynamic_cast<Forgetful&>(*(*copy)[0]).inner->is_training());
  auto& nested = dynamic_cast<nn::Sequential&>(*(*copy)[1]);
  CHECK(nested.is_training());
  CHECK(nested[0]->is_training());
  CHECK_FALSE(nested[1]->is_training());
}

TEST_CASE("zero_grad drops gradients, and freezing lets no more come") {
  auto model = small_model();
  model.materialize(1);
  auto pass = [&] {
    auto y = model({random_tensor({3, 6}, "x")});
    if (y.requires_gradient()) y.backward(random_tensor({3, 2}, "dy"));
  };
  auto have_gradients = [&] {
    return std::ranges::count_if(model.parameters(), [](const auto* each) { return each->has_gradient; });
  };
  pass();
  auto once = model.parameters()[0]->gradient().clone();
  pass();
  CHECK_FALSE(same_bits(model.parameters()[0]->gradient(), once));
  model.zero_grad();
  CHECK(have_gradients() == 0);
  pass();
  CHECK(have_gradients() == 4);
  CHECK(same_bits(model.parameters()[0]->gradient(), once));
  model.zero_grad();
  model[1]->freeze();
  pass();
  CHECK(have_gradients() == 2);
  model.requires_gradient(false);
  model.zero_grad();
  pass();
  CHECK(have_gradients() == 0);
  model.requires_gradient();
  pass();
  CHECK(have_gradients() == 4);
}
