#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "kernels/autograd/finite_differences.hpp"
#include "support/bits.hpp"
#include "support/gpu_agreement.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using troupe::testing::device_under_test;
using troupe::testing::make_parameter;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::require_close_to;
using troupe::testing::same_bits;

namespace {

/// y, dx and the parameters' gradients.
std::vector<tensor> forwards_and_back(const std::function<variable(const variable&)>& compute,
                                      const tensor& x, const std::vector<parameter*>& parameters) {
  auto in = leaf(x);
  auto y = compute(in);
  y.backward(cast(placed(random_tensor(y.value.shape(), "dy")), y.value.dtype()));
  std::vector<tensor> result{y.value, in.gradient()};
  for (auto* each : parameters) {
    result.push_back(each->gradient().clone());
    each->mark_stepped();
  }
  return result;
}

void require_same_bits(const std::vector<tensor>& a, const std::vector<tensor>& b) {
  REQUIRE(std::ranges::equal(a, b,
                             [](const tensor& x, const tensor& y) { return same_bits(x.to({}), y.to({})); }));
}

/// The CPU promises the bits. On a GPU cuBLASLt's heuristics choose an algorithm for each epilogue, and two
/// of them may add in different orders.
void require_same_products(const std::vector<tensor>& a, const std::vector<tensor>& b) {
  if (device_under_test().type == device::kind::cpu) return require_same_bits(a, b);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) require_close_to(a[i], b[i]);
}

}  // namespace

TEST_CASE("a fused relu has the values and gradients of a separate one") {
  auto weight = make_parameter("weight", {37, 50}), bias = make_parameter("bias", {37});
  auto kernel = make_parameter("kernel", {9, 3, 3, 3}), kernel_bias = make_parameter("kernel_bias", {9});
  auto rows = placed(random_tensor({21, 50}, "rows")),
       images = placed(random_tensor({2, 3, 11, 7}, "images"));
  conv2d_options with_relu{.padding = {1, 1}, .relu = true}, without{.padding = {1, 1}};
  for (auto type : {dtype::f32, dtype::bf16}) {
    autocast mixed(type);
    auto fused = forwards_and_back([&](const auto& x) { return linear_relu(x, weight, &bias); }, rows,
                                   {&weight, &bias});
    auto apart = forwards_and_back([&](const auto& x) { return relu(linear(x, weight, &bias)); }, rows,
                                   {&weight, &bias});
    require_same_products(fused, apart);
    fused = forwards_and_back([&](const auto& x) { return conv2d(x, kernel, &kernel_bias, with_relu); },
                              images, {&kernel, &kernel_bias});
    apart = forwards_and_back([&](const auto& x) { return relu(conv2d(x, kernel, &kernel_bias, without)); },
                              images, {&kernel, &kernel_bias});
    require_same_bits(fused, apart);  // on GPUs too: there the relu is a pass of our own in any case
  }
}
