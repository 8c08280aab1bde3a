#include "troupe/ops/cpu/float_copy.hpp"

#include "troupe/ops/cpu/in_blocks.hpp"

namespace troupe::cpu {
namespace {

void copy(const float* from, float* to, std::int64_t size) { std::copy_n(from, size, to); }

}  // namespace

tensor float_copy(const tensor& of) {
  if (of.dtype() == dtype::f32) return of;
  auto copied = tensor::empty(of.shape());
  map_in_blocks(copy, copied, of);
  return copied;
}

void store_floats(const tensor& from, tensor& to) { map_in_blocks(copy, to, from); }

}  // namespace troupe::cpu
