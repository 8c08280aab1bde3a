#pragma once
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "support/devices.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "troupe/autograd/variable.hpp"

namespace troupe::testing {

/// The sum of y times fixed numbers, in f64.
inline double weighted(const tensor& y, const tensor& weights) {
  auto values = values_of(y), factors = values_of(weights);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * factors[i];
  return sum;
}

/// A recorded function of some variables.
using function = std::function<variable(const std::vector<variable>&)>;

/// Compares what `values` (inputs' or parameters' elements, in place) have as gradients with differences.
inline void check_gradient(tensor values, const tensor& gradient, const std::function<double()>& loss) {
  REQUIRE(gradient.defined());
  REQUIRE(gradient.shape() == values.shape());
  constexpr float delta = 4e-3F;
  auto got = values_of(gradient);
  for (std::size_t i = 0; i < got.size(); ++i) {
    auto loss_after = [&](float step) {
      auto kept = values.to({}).clone(), moved = kept.clone();
      moved.values<float>()[i] += step;
      values.copy_from(moved);
      auto result = loss();
      values.copy_from(kept);
      return result;
    };
    CAPTURE(i);
    CHECK(std::abs(got[i] - (loss_after(delta) - loss_after(-delta)) / (2 * delta)) < 4e-3);
  }
}

/// Holds the gradients of all inputs and parameters, all f32, to differences of `compute` on the device under
/// test.
inline void check(const function& compute, const std::vector<tensor>& inputs,
                  const std::vector<parameter*>& parameters = {}) {
  std::vector<tensor> there;
  std::vector<variable> leaves, constants;
  for (const auto& each : inputs) {
    there.push_back(placed(each));
    leaves.push_back(leaf(there.back()));
    constants.push_back({there.back()});
  }
  auto y = compute(leaves);
  auto weights = random_tensor(y.value.shape(), "weights").to(y.value.device());
  y.backward(weights);
  auto loss = [&] { return weighted(compute(constants).value, weights); };
  for (std::size_t i = 0; i < there.size(); ++i) check_gradient(there[i], leaves[i].gradient(), loss);
  for (auto* each : parameters) check_gradient(each->value(), each->gradient(), loss);
}

inline parameter make_parameter(const std::string& name, const shape& extents) {
  return {name, placed(random_tensor(extents, name)), placed(tensor::zeros(extents))};
}

}  // namespace troupe::testing
