#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "kernels/autograd/make_parameter.hpp"
#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/backward_pass.hpp"
#include "troupe/autograd/checkpoint.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/grad_mode.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using troupe::testing::make_parameter;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

TEST_CASE("a parameter in an expression gets the gradient of a leaf in its place") {
  auto scale = make_parameter("scale", {4});
  auto x = random_tensor({3, 4}, "x"), dy = random_tensor({3, 4}, "dy");
  auto as_leaf = leaf(scale.value().clone());
  (leaf(x) * as_leaf + as_leaf).backward(dy);
  backward_pass pass(leaf(x) * as_variable(scale) + as_variable(scale));
  pass.run_inputs(dy);
  CHECK_FALSE(scale.has_gradient);
  pass.run_weights();
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(std::abs(scale.gradient().values<float>()[i] - as_leaf.gradient().values<float>()[i]) < 1e-6);
  auto once = scale.gradient().clone();
  (variable{x} * as_variable(scale)).backward(dy);
  CHECK_FALSE(same_bits(scale.gradient(), once));
}

TEST_CASE("a parameter in an expression is a constant if it is frozen or nothing is recorded") {
  auto scale = make_parameter("scale", {4});
  {
    no_grad nothing_recorded;
    CHECK_FALSE(as_variable(scale).requires_gradient());
  }
  CHECK(as_variable(scale).requires_gradient());
  scale.requires_gradient = false;
  CHECK_FALSE(as_variable(scale).requires_gradient());
}

TEST_CASE("operators compute the functions of their names") {
  variable a{random_tensor({2, 3}, "a")}, b{random_tensor({3}, "b")};
  CHECK(same_bits((a + b).value, add(a, b).value));
  CHECK(same_bits((a - b).value, subtract(a, b).value));
  CHECK(same_bits((a * b).value, multiply(a, b).value));
  CHECK(same_bits((a / b).value, divide(a, b).value));
  CHECK(same_bits((-a * 2 + 1).value, add(multiply(negate(a), 2), 1).value));
}

TEST_CASE("a weight changed between forward and backward is refused with its name") {
  auto weight = make_parameter("weight", {3, 3}), kernel = make_parameter("kernel", {1, 1, 1, 1}),
       gain = make_parameter("gain", {3}), shift = make_parameter("shift", {3}),
       channel = make_parameter("channel", {1}), offset = make_parameter("offset", {1});
  auto rows = leaf(random_tensor({4, 3}, "rows")), images = leaf(random_tensor({2, 1, 3, 3}, "images"));
  auto refuses = [](parameter& written, const variable& y) {
    written.mark_changed();
    CHECK_THROWS_WITH(sum(y).backward(), ContainsSubstring("the parameter " + written.name));
  };
  refuses(weight, linear(rows, weight, nullptr));
  refuses(kernel, conv2d(images, kernel, nullptr));
  refuses(gain, layer_norm(rows, &gain, &shift));
  refuses(gain, rms_norm(rows, &gain));
  refuses(channel, batch_norm(images, channel, offset, {}, {}));
  refuses(channel, batch_norm_inference(images, channel, offset, tensor::zeros({1}), tensor::full({1}, 1)));
  refuses(gain, multiply(rows, as_variable(gain)));
  refuses(weight, checkpoint([&](const variable& x) { return linear(x, weight, nullptr); }, rows));
}

TEST_CASE("a weight that backward does not read may be changed between forward and backward") {
  auto weight = make_parameter("weight", {3, 3}), bias = make_parameter("bias", {3});
  auto y = linear({random_tensor({4, 3}, "x")}, weight, &bias);  // no gradient of x is wanted
  weight.mark_changed();
  sum(y).backward();
  CHECK(weight.has_gradient);
  auto z = linear(leaf(random_tensor({4, 3}, "x")), weight, &bias);
  bias.mark_changed();
  backward_pass pass(sum(z));
  pass.run_inputs({});
  weight.mark_stepped();  // weight gradients may come later
  pass.run_weights();
  CHECK(weight.has_gradient);
}
