// A parameter whose elements are elsewhere between its uses.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "kernels/autograd/make_parameter.hpp"
#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/backward_pass.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using troupe::testing::make_parameter;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

TEST_CASE("a value that is detached between forward and backward changes no gradient") {
  auto x = random_tensor({5, 4}, "x"), dy = random_tensor({5, 3}, "dy");
  auto kept = make_parameter("weight", {3, 4}), gathered = make_parameter("weight", {3, 4});
  auto elements = gathered.value().clone();
  auto version = gathered.version();
  auto of_kept = linear(leaf(x), kept, nullptr), of_gathered = linear(leaf(x), gathered, nullptr);
  CHECK(same_bits(of_kept.value, of_gathered.value));
  gathered.detach();
  CHECK_FALSE(gathered.is_attached());
  CHECK_THROWS_WITH(linear(leaf(x), gathered, nullptr), ContainsSubstring("weight[3, 4]"));
  gathered.attach(elements);
  of_kept.backward(dy);
  of_gathered.backward(dy);
  CHECK(gathered.version() == version);
  CHECK(same_bits(kept.gradient(), gathered.gradient()));
}

TEST_CASE("a backward that needs a detached value is refused with its name") {
  auto weight = make_parameter("weight", {3, 4});
  auto y = linear(leaf(random_tensor({5, 4}, "x")), weight, nullptr);
  weight.detach();
  CHECK_THROWS_WITH(y.backward(random_tensor({5, 3}, "dy")),
                    ContainsSubstring("weight[3, 4]") && ContainsSubstring("attach it before backward"));
}

TEST_CASE("a conversion alone serves operations of its dtype") {
  auto weight = make_parameter("weight", {3, 4});
  auto x = cast(random_tensor({5, 4}, "x"), dtype::bf16);
  auto converted = cast(weight.value(), dtype::bf16);
  autocast in_bf16(dtype::bf16);
  auto expected = linear(leaf(x), weight, nullptr);
  weight.detach();
  weight.attach_converted(converted);
  CHECK(weight.is_attached());
  CHECK(same_bits(linear(leaf(x), weight, nullptr).value, expected.value));
  CHECK_FALSE(weight.value().defined());
  CHECK(parameter(weight).is_attached());
  weight.move_to({});
  CHECK(weight.is_attached());
  CHECK_THROWS_WITH(weight.as(dtype::f16), ContainsSubstring("attached in bf16 alone"));
}

TEST_CASE("a backward that reads the value itself is refused where a conversion alone is attached") {
  auto weight = make_parameter("gain", {4});
  auto y = layer_norm(leaf(random_tensor({5, 4}, "x")), &weight, nullptr);
  auto converted = cast(weight.value(), dtype::bf16);
  weight.detach();
  weight.attach_converted(converted);
  CHECK_THROWS_WITH(y.backward(random_tensor({5, 4}, "dy")), ContainsSubstring("attach it before backward"));
}

TEST_CASE("a gradient is attached and detached apart from its value") {
  auto weight = make_parameter("weight", {3, 4});
  auto x = random_tensor({5, 4}, "x"), dy = random_tensor({5, 3}, "dy");
  linear(leaf(x), weight, nullptr).backward(dy);
  auto expected = weight.gradient().clone();
  weight.has_gradient = false;
  weight.detach_gradient();
  CHECK_FALSE(weight.gradient().defined());
  auto y = linear(leaf(x), weight, nullptr);
  weight.attach_gradient(tensor::full({3, 4}, 7));
  y.backward(dy);
  CHECK(same_bits(weight.gradient(), expected));
}

TEST_CASE("memory of another shape is refused") {
  auto weight = make_parameter("weight", {3, 4});
  CHECK_THROWS_WITH(weight.attach(tensor::zeros({4, 3})), ContainsSubstring("weight[3, 4]"));
  CHECK_THROWS_AS(weight.attach_gradient(tensor::zeros({12})), std::invalid_argument);
  CHECK_THROWS_AS(weight.attach_converted(tensor::zeros({3}, dtype::bf16)), std::invalid_argument);
}

TEST_CASE("what accumulates into a detached gradient gets memory for it, from its source if it has one") {
  parameter weight("weight", tensor::full({2, 3}, 2), tensor::zeros({2, 3}));
  weight.detach_gradient();
  add_gradient(weight, tensor::full({2, 3}, 5));
  CHECK(weight.gradient().values<float>()[5] == 5);
  auto given = tensor::full({2, 3}, 9);
  weight.gradient_source = [&](const shape&) { return given; };
  weight.detach_gradient();
  weight.has_gradient = false;
  add_gradient(weight, tensor::full({2, 3}, 1));
  add_gradient(weight, tensor::full({2, 3}, 1));
  CHECK(given.values<float>()[0] == 2);
  CHECK(weight.gradient().bytes().data() == given.bytes().data());
}
