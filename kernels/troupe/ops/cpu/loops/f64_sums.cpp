#include "troupe/ops/cpu/loops/f64_sums.hpp"

#include "troupe/ops/cpu/loops/vector_clones.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t num_lanes = 32;

template <class Term>
[[gnu::always_inline]] inline double sum_in_lanes(std::int64_t size, const Term& term) {
  double lane[num_lanes] = {};
  std::int64_t i = 0;
  for (; i + num_lanes <= size; i += num_lanes)
    for (std::int64_t l = 0; l < num_lanes; ++l) lane[l] += term(i + l);
  for (std::int64_t l = 0; i + l < size; ++l) lane[l] += term(i + l);
  for (auto width = num_lanes / 2; width > 0; width /= 2)
    for (std::int64_t l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

}  // namespace

TROUPE_CLONES double sum_of(const float* x, std::int64_t size) {
  return sum_in_lanes(size, [x](std::int64_t i) { return double{x[i]}; });
}

TROUPE_CLONES double sum_of_squares(const float* x, std::int64_t size) {
  return sum_in_lanes(size, [x](std::int64_t i) { return double{x[i]} * double{x[i]}; });
}

TROUPE_CLONES double sum_of_squared_differences(const float* a, const float* b, std::int64_t size) {
  return sum_in_lanes(size, [a, b](std::int64_t i) {
    auto difference = double{a[i]} - double{b[i]};
    return difference * difference;
  });
}

}  // namespace troupe::cpu
