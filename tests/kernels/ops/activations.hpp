#pragma once
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "troupe/ops/activation.hpp"

namespace troupe::testing {

/// One activation beside its definition in f64.
struct activation {
  std::string name;
  std::function<tensor(const tensor& x)> forward;
  std::function<tensor(const tensor& dy, const tensor& x, const tensor& y)> backward;
  std::function<double(double)> function = {}, derivative = {};
};

inline double phi(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
inline double cumulative(double x) { return std::erfc(-x / std::sqrt(2)) / 2; }
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }
inline double tanh_argument(double x) { return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }

inline activation gelu_of(const std::string& name, gelu_kind kind) {
  return {name, [kind](const tensor& x) { return gelu_forward(x, kind); },
          [kind](const tensor& dy, const tensor& x, const tensor&) { return gelu_backward(dy, x, kind); }};
}

inline std::vector<activation> activations() {
  auto exact = gelu_of("gelu", gelu_kind::exact), approximate = gelu_of("gelu_tanh", gelu_kind::tanh);
  exact.function = [](double x) { return x * cumulative(x); };
  exact.derivative = [](double x) { return cumulative(x) + x * phi(x); };
  approximate.function = [](double x) { return x / 2 * (1 + std::tanh(tanh_argument(x))); };
  approximate.derivative = [](double x) {
    auto t = std::tanh(tanh_argument(x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  };
  activation silu{"silu", silu_forward,
                  [](const tensor& dy, const tensor& x, const tensor&) { return silu_backward(dy, x); },
                  [](double x) { return x * logistic(x); },
                  [](double x) { return logistic(x) * (1 + x * (1 - logistic(x))); }};
  activation tanh{"tanh", tanh_forward,
                  [](const tensor& dy, const tensor&, const tensor& y) { return tanh_backward(dy, y); },
                  [](double x) { return std::tanh(x); },
                  [](double x) { return 1 - std::tanh(x) * std::tanh(x); }};
  activation sigmoid{"sigmoid", sigmoid_forward,
                     [](const tensor& dy, const tensor&, const tensor& y) { return sigmoid_backward(dy, y); },
                     logistic, [](double x) { return logistic(x) * (1 - logistic(x)); }};
  return {exact, approximate, silu, tanh, sigmoid};
}

}  // namespace troupe::testing
