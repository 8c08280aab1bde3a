#include "troupe/ops/cpu/attention_rows.hpp"

#include <algorithm>

#include "troupe/ops/cpu/vector_clones.hpp"
#include "troupe/ops/cpu/vector_math.hpp"

namespace troupe::cpu {
namespace {

// Sums and maxima run in 16 lanes, whatever the vectors' width, which halve four times at the end.
constexpr std::int64_t lanes = 16;

template <class Combine>
[[gnu::always_inline]] inline float fold(float* lane, Combine combine) {
  for (auto half = lanes / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) lane[i] = combine(lane[i], lane[i + half]);
  return lane[0];
}

[[gnu::always_inline]] inline float plus(float a, float b) { return a + b; }
[[gnu::always_inline]] inline float larger(float a, float b) { return a > b ? a : b; }

TROUPE_CLONES float maximum(const float* row, std::int64_t size) {
  alignas(64) float lane[lanes];
  std::fill_n(lane, lanes, -__builtin_inff());
  std::int64_t first = 0;
  for (; first + lanes <= size; first += lanes)
    for (std::int64_t i = 0; i < lanes; ++i) lane[i] = larger(row[first + i], lane[i]);
  for (std::int64_t i = 0; first + i < size; ++i) lane[i] = larger(row[first + i], lane[i]);
  return fold(lane, larger);
}

TROUPE_CLONES float exponentials(float* row, std::int64_t size, float scale, float largest) {
  alignas(64) float lane[lanes] = {};
  std::int64_t first = 0;
  for (; first + lanes <= size; first += lanes)
    for (std::int64_t i = 0; i < lanes; ++i) {
      row[first + i] = exp_f32(row[first + i] * scale - largest);
      lane[i] += row[first + i];
    }
  for (std::int64_t i = 0; first + i < size; ++i) {
    row[first + i] = exp_f32(row[first + i] * scale - largest);
    lane[i] += row[first + i];
  }
  return fold(lane, plus);
}

TROUPE_CLONES void gradient_loop(float* products, float* gradients, std::int64_t size, float scale,
                                 float log_sum_exp, float delta) {
  for (std::int64_t i = 0; i < size; ++i) {
    products[i] = exp_f32(products[i] * scale - log_sum_exp);
    gradients[i] = products[i] * (gradients[i] - delta) * scale;
  }
}

}  // namespace

float continue_softmax(float* row, std::int64_t num_seen, std::int64_t size, float scale,
                       running_softmax& softmax) {
  auto largest = std::max(softmax.largest, scale * maximum(row, num_seen));
  auto factor = exp_f32(softmax.largest - largest);
  softmax.sum = softmax.sum * factor + exponentials(row, num_seen, scale, largest);
  softmax.largest = largest;
  std::fill(row + num_seen, row + size, 0.0F);
  return factor;
}

TROUPE_CLONES void scale_row(float* row, float factor, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) row[i] *= factor;
}

float log_sum_exp_of(const running_softmax& softmax) { return softmax.largest + log_f32(softmax.sum); }

TROUPE_CLONES float dot(const float* a, const float* b, std::int64_t size) {
  alignas(64) float lane[lanes] = {};
  std::int64_t first = 0;
  for (; first + lanes <= size; first += lanes)
    for (std::int64_t i = 0; i < lanes; ++i) lane[i] += a[first + i] * b[first + i];
  for (std::int64_t i = 0; first + i < size; ++i) lane[i] += a[first + i] * b[first + i];
  return fold(lane, plus);
}

void softmax_gradient(float* products, float* gradients, std::int64_t num_seen, std::int64_t size,
                      float scale, float log_sum_exp, float delta) {
  gradient_loop(products, gradients, num_seen, scale, log_sum_exp, delta);
  std::fill(products + num_seen, products + size, 0.0F);
  std::fill(gradients + num_seen, gradients + size, 0.0F);
}

}  // namespace troupe::cpu
