#pragma once
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "support/random_tensor.hpp"
#include "troupe/autograd/variable.hpp"

namespace troupe::testing {

/// The sum of y times fixed numbers, in f64.
inline double weighted(const tensor& y, const tensor& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < y.values<float>().size(); ++i)
    sum += double{y.values<float>()[i]} * weights.values<float>()[i];
  return sum;
}

/// A recorded function of some variables.
using function = std::function<variable(const std::vector<variable>&)>;

/// Compares what `values` (inputs' or parameters' elements, in place) have as gradients with differences.
inline void check_gradient(tensor values, const tensor& gradient, const std::function<double()>& loss) {
  REQUIRE(gradient.defined());
  REQUIRE(gradient.extents() == values.extents());
  constexpr float delta = 4e-3F;
  for (std::size_t i = 0; i < values.values<float>().size(); ++i) {
    auto& at = values.values<float>()[i];
    auto kept = at;
    at = kept + delta;
    auto up = loss();
    at = kept - delta;
    auto down = loss();
    at = kept;
    CAPTURE(i);
    CHECK(std::abs(gradient.values<float>()[i] - (up - down) / (2 * delta)) < 4e-3);
  }
}

/// Holds the gradients of all inputs and parameters, all f32, to differences of `compute`.
inline void check(const function& compute, const std::vector<tensor>& inputs,
                  const std::vector<parameter*>& parameters = {}) {
  std::vector<variable> leaves, constants;
  for (const auto& each : inputs) {
    leaves.push_back(leaf(each));
    constants.push_back({each});
  }
  auto y = compute(leaves);
  auto weights = random_tensor(y.value.extents(), "weights");
  y.backward(weights);
  auto loss = [&] { return weighted(compute(constants).value, weights); };
  for (std::size_t i = 0; i < inputs.size(); ++i) check_gradient(inputs[i], leaves[i].gradient(), loss);
  for (auto* each : parameters) check_gradient(each->value, each->gradient, loss);
}

inline parameter make_parameter(const std::string& name, const shape& extents) {
  return {name, random_tensor(extents, name), tensor::zeros(extents)};
}

}  // namespace troupe::testing
