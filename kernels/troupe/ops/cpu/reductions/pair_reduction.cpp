#include "troupe/ops/cpu/reductions/pair_reduction.hpp"

#include "troupe/ops/cpu/loops/vector_clones.hpp"

namespace troupe::cpu {

TROUPE_CLONES void sum_of_two(const float* a, const float* b, float* __restrict result, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = a[i] + b[i];
}
TROUPE_CLONES void sum_of_four(const float* a, const float* b, const float* c, const float* d,
                               float* __restrict result, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

}  // namespace troupe::cpu
