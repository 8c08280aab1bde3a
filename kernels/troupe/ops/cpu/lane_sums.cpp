#include "troupe/ops/cpu/lane_sums.hpp"

#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe::cpu {
namespace {

template <class Term>
inline __attribute__((always_inline)) float sum(std::int64_t size, const Term& term) {
  constexpr int num_lanes = 16;
  float lanes[num_lanes] = {};
  std::int64_t i = 0;
  for (; i + num_lanes <= size; i += num_lanes)
    for (int lane = 0; lane < num_lanes; ++lane) lanes[lane] += term(i + lane);
  for (int lane = 0; i + lane < size; ++lane) lanes[lane] += term(i + lane);
  for (int half = num_lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

}  // namespace

TROUPE_CLONES float lane_sum(const float* x, std::int64_t size) {
  return sum(size, [x](std::int64_t i) { return x[i]; });
}

TROUPE_CLONES float lane_sum_of_squares(const float* x, float center, std::int64_t size) {
  return sum(size, [x, center](std::int64_t i) { return (x[i] - center) * (x[i] - center); });
}

TROUPE_CLONES float lane_sum_of_products(const float* x, float center, const float* y, std::int64_t size) {
  return sum(size, [x, center, y](std::int64_t i) { return (x[i] - center) * y[i]; });
}

}  // namespace troupe::cpu
