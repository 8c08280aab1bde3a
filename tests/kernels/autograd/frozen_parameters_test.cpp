#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "kernels/autograd/finite_differences.hpp"
#include "support/bits.hpp"
#include "troupe/autograd/functions.hpp"

using namespace troupe;
using troupe::testing::make_parameter;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

using layer = std::function<variable(const variable& x, parameter& weight, parameter& bias)>;

struct layer_case {
  std::string name;
  layer compute;
  shape input, weight, bias;
  bool same_bias_bits = true;  ///< the bias's gradient alone is computed as beside the weight's
};

const std::vector<layer_case> layers{
    {"linear",
     [](const variable& x, parameter& w, parameter& b) { return linear(x, w, &b); },
     {3, 4},
     {5, 4},
     {5}},
    {"linear_relu",
     [](const variable& x, parameter& w, parameter& b) { return linear_relu(x, w, &b); },
     {3, 4},
     {5, 4},
     {5}},
    {"conv2d",
     [](const variable& x, parameter& w, parameter& b) { return conv2d(x, w, &b); },
     {2, 2, 4, 5},
     {3, 2, 3, 3},
     {3},
     false},
    {"layer_norm",
     [](const variable& x, parameter& w, parameter& b) { return layer_norm(x, &w, &b); },
     {3, 4},
     {4},
     {4}},
    {"batch_norm",
     [](const variable& x, parameter& w, parameter& b) { return batch_norm(x, w, b, {}, {}); },
     {3, 2, 4, 5},
     {2},
     {2}},
    {"batch_norm_inference",
     [](const variable& x, parameter& w, parameter& b) {
       return batch_norm_inference(x, w, b, placed(tensor::full({2}, 0.25F)), placed(tensor::full({2}, 2)));
     },
     {3, 2, 4, 5},
     {2},
     {2}},
};

struct outcome {
  parameter weight, bias;
  tensor dx;
};

outcome run(const layer_case& layer, bool weight_is_wanted, bool bias_is_wanted) {
  outcome result{make_parameter("weight", layer.weight), make_parameter("bias", layer.bias), {}};
  result.weight.requires_gradient = weight_is_wanted;
  result.bias.requires_gradient = bias_is_wanted;
  auto x = leaf(placed(random_tensor(layer.input, "x")));
  for (const auto* name : {"first", "second"}) {  // one gradient is assigned, the next added
    auto y = layer.compute(x, result.weight, result.bias);
    y.backward(placed(random_tensor(y.value.shape(), name)));
  }
  result.dx = x.gradient();
  return result;
}

void require_close(const tensor& a, const tensor& b) {
  auto first = values_of(a), second = values_of(b);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(std::abs(first[i] - second[i]) < 1e-5);
}

void check_untouched(const parameter& frozen) {
  CHECK_FALSE(frozen.has_gradient);
  for (auto each : values_of(frozen.gradient())) CHECK(each == 0);
}

}  // namespace

TEST_CASE("a frozen weight gets no gradient, and the bias beside it its usual one") {
  for (const auto& each : layers) {
    CAPTURE(each.name);
    auto all = run(each, true, true), some = run(each, false, true);
    check_untouched(some.weight);
    CHECK(some.bias.has_gradient);
    if (each.same_bias_bits)
      CHECK(same_bits(some.bias.gradient().to({}), all.bias.gradient().to({})));
    else
      require_close(some.bias.gradient(), all.bias.gradient());
    CHECK(same_bits(some.dx.to({}), all.dx.to({})));
  }
}

TEST_CASE("a frozen bias gets no gradient, and the weight beside it its usual one") {
  for (const auto& each : layers) {
    CAPTURE(each.name);
    auto all = run(each, true, true), some = run(each, true, false);
    check_untouched(some.bias);
    CHECK(some.weight.has_gradient);
    CHECK(same_bits(some.weight.gradient().to({}), all.weight.gradient().to({})));
    CHECK(same_bits(some.dx.to({}), all.dx.to({})));
  }
}

TEST_CASE("layers whose parameters are all frozen still return the gradient of their input") {
  for (const auto& each : layers) {
    CAPTURE(each.name);
    auto none = run(each, false, false);
    check_untouched(none.weight);
    check_untouched(none.bias);
    CHECK(same_bits(none.dx.to({}), run(each, true, true).dx.to({})));
  }
}

TEST_CASE("what was frozen while a layer was computed gets no gradient, if it is unfrozen before backward") {
  for (const auto& each : layers)
    for (bool weight_was_frozen : {true, false})
      for (bool bias_was_frozen : {true, false}) {
        CAPTURE(each.name, weight_was_frozen, bias_was_frozen);
        outcome made{make_parameter("weight", each.weight), make_parameter("bias", each.bias), {}};
        made.weight.requires_gradient = !weight_was_frozen;
        made.bias.requires_gradient = !bias_was_frozen;
        auto x = leaf(placed(random_tensor(each.input, "x")));
        auto y = each.compute(x, made.weight, made.bias);
        made.weight.requires_gradient = made.bias.requires_gradient = true;
        std::vector<parameter*> told;
        y.backward(placed(random_tensor(y.value.shape(), "dy")),
                   {.on_gradient = [&told](parameter& one) { told.push_back(&one); }});
        CHECK(made.weight.has_gradient == !weight_was_frozen);
        CHECK(made.bias.has_gradient == !bias_was_frozen);
        CHECK(std::ranges::count(told, &made.weight) == (weight_was_frozen ? 0 : 1));
        CHECK(std::ranges::count(told, &made.bias) == (bias_was_frozen ? 0 : 1));
        CHECK(made.weight.requires_gradient);
        CHECK(made.bias.requires_gradient);
        CHECK(x.gradient().defined());
      }
}

TEST_CASE("what is frozen between a layer's computation and its backward gets no gradient") {
  for (const auto& each : layers) {
    CAPTURE(each.name);
    outcome made{make_parameter("weight", each.weight), make_parameter("bias", each.bias), {}};
    auto x = leaf(placed(random_tensor(each.input, "x")));
    auto y = each.compute(x, made.weight, made.bias);
    made.weight.requires_gradient = made.bias.requires_gradient = false;
    y.backward(placed(random_tensor(y.value.shape(), "dy")));
    check_untouched(made.weight);
    check_untouched(made.bias);
  }
}
