#include "troupe/ops/cpu/loops/float_copy.hpp"

#include "troupe/ops/cpu/loops/map_in_blocks.hpp"

namespace troupe::cpu {
namespace {

void copy(const float* from, float* to, std::int64_t size) { std::copy_n(from, size, to); }

}  // namespace

tensor float_copy(const tensor& x) {
  if (x.dtype() == dtype::f32) return x;
  auto copied = tensor::empty(x.shape());
  map_in_blocks(copy, copied, x);
  return copied;
}

void store_floats(const tensor& from, tensor& to) { map_in_blocks(copy, to, from); }

}  // namespace troupe::cpu
