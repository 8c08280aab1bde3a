#include "troupe/ops/sgd_step.hpp"

#include "troupe/ops/arguments.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe {
namespace {

struct factors {
  float rate, momentum, decay;
};

TROUPE_CLONES void plain_step(float* w, float* g, std::int64_t size, factors by) {
  for (std::int64_t i = 0; i < size; ++i) {
    w[i] -= by.rate * (g[i] + by.decay * w[i]);
    g[i] = 0;
  }
}

TROUPE_CLONES void momentum_step(float* w, float* g, float* m, std::int64_t size, factors by) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto gradient = g[i] + by.decay * w[i];
    m[i] = by.momentum * m[i] + gradient;
    w[i] -= by.rate * m[i];
    g[i] = 0;
  }
}

TROUPE_CLONES void nesterov_step(float* w, float* g, float* m, std::int64_t size, factors by) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto gradient = g[i] + by.decay * w[i];
    m[i] = by.momentum * m[i] + gradient;
    w[i] -= by.rate * (gradient + by.momentum * m[i]);
    g[i] = 0;
  }
}

}  // namespace

void sgd_step(tensor weight, tensor gradient, tensor momentum_buffer, const sgd_step_options& options) {
  require_argument("sgd_step", "weight", weight, dtype::f32, weight.extents());
  require_argument("sgd_step", "gradient", gradient, dtype::f32, weight.extents());
  auto* w = weight.values<float>().data();
  auto* g = gradient.values<float>().data();
  factors by{static_cast<float>(options.learning_rate), static_cast<float>(options.momentum),
             static_cast<float>(options.weight_decay)};
  if (options.momentum == 0) return plain_step(w, g, weight.num_elements(), by);
  require_argument("sgd_step", "momentum_buffer", momentum_buffer, dtype::f32, weight.extents());
  auto* m = momentum_buffer.values<float>().data();
  options.nesterov ? nesterov_step(w, g, m, weight.num_elements(), by)
                   : momentum_step(w, g, m, weight.num_elements(), by);
}

}  // namespace troupe
