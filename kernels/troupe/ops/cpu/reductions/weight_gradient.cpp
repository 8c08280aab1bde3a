#include "troupe/ops/cpu/reductions/weight_gradient.hpp"

#include <algorithm>

#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"

namespace troupe::cpu {
namespace {

void copy(const float* from, float* to, std::int64_t size) { std::copy_n(from, size, to); }

TROUPE_CLONES void add(const float* a, const float* b, float* sum, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) sum[i] = a[i] + b[i];
}

bool is_in_place(const tensor& gradient, gradient_mode mode) {
  return gradient.dtype() == dtype::f32 && mode == gradient_mode::assign;
}

}  // namespace

tensor place_for_gradient(const tensor& gradient, gradient_mode mode) {
  if (!gradient.defined() || is_in_place(gradient, mode)) return gradient;
  return tensor::empty(gradient.shape());
}

void store_gradient(const tensor& computed, tensor& gradient, gradient_mode mode) {
  if (!gradient.defined() || is_in_place(gradient, mode)) return;
  if (mode == gradient_mode::accumulate)
    map_in_blocks(add, gradient, gradient, computed);
  else
    map_in_blocks(copy, gradient, computed);
}

}  // namespace troupe::cpu
