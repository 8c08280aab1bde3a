#include "troupe/ops/adam_step.hpp"

#include <cmath>

#include "troupe/ops/arguments.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe {
namespace {

struct factors {
  float gradient_decay;  // lambda, or 0 where decoupled
  float shrink;          // 1 - learning_rate lambda where decoupled, or 1
  float one_minus_beta1, beta2, one_minus_beta2;
  float rate, correction, epsilon;  // learning_rate / (1 - beta1^t), sqrt(1 - beta2^t), epsilon
};

TROUPE_CLONES void step_of(float* __restrict w, float* __restrict g, float* __restrict m, float* __restrict v,
                           std::int64_t size, factors by) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto gradient = g[i] + by.gradient_decay * w[i];
    auto mean = m[i] + by.one_minus_beta1 * (gradient - m[i]);
    auto square = by.beta2 * v[i] + by.one_minus_beta2 * (gradient * gradient);
    auto denominator = std::sqrt(square) / by.correction + by.epsilon;
    w[i] = by.shrink * w[i] - by.rate * mean / denominator;
    m[i] = mean;
    v[i] = square;
    g[i] = 0;
  }
}

/// base^exponent by squaring: plain multiplications, the same bits on every machine.
double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

factors factors_of(std::uint64_t step, const adam_step_options& options) {
  auto decay = options.weight_decay, rate = options.learning_rate;
  return {.gradient_decay = static_cast<float>(options.decoupled ? 0 : decay),
          .shrink = static_cast<float>(options.decoupled ? 1 - rate * decay : 1),
          .one_minus_beta1 = static_cast<float>(1 - options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .one_minus_beta2 = static_cast<float>(1 - options.beta2),
          .rate = static_cast<float>(rate / (1 - power(options.beta1, step + 1))),
          .correction = static_cast<float>(std::sqrt(1 - power(options.beta2, step + 1))),
          .epsilon = static_cast<float>(options.epsilon)};
}

}  // namespace

void adam_step(tensor weight, tensor gradient, tensor exp_avg, tensor exp_avg_sq, std::uint64_t step,
               const adam_step_options& options) {
  require_argument("adam_step", "weight", weight, dtype::f32, weight.extents());
  require_argument("adam_step", "gradient", gradient, dtype::f32, weight.extents());
  require_argument("adam_step", "exp_avg", exp_avg, dtype::f32, weight.extents());
  require_argument("adam_step", "exp_avg_sq", exp_avg_sq, dtype::f32, weight.extents());
  step_of(weight.values<float>().data(), gradient.values<float>().data(), exp_avg.values<float>().data(),
          exp_avg_sq.values<float>().data(), weight.num_elements(), factors_of(step, options));
}

}  // namespace troupe
