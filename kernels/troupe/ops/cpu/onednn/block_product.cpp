#include "troupe/ops/cpu/block_product.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include "troupe/ops/cpu/onednn/block_tiles.hpp"
#include "troupe/ops/cpu/onednn/library_threads.hpp"

namespace troupe::cpu {
namespace {

using product_function = void (*)(const block_product_shape& product, const float* a, const float* b,
                                  float* c);

void by_sgemm(const block_product_shape& product, const float* a, const float* b, float* c) {
  library_threads alone(1);
  auto status = dnnl_sgemm(product.left_is_transposed ? 'T' : 'N', 'N', product.rows, product.columns,
                           product.inner, 1.0F, a, product.left_stride, b, product.right_stride,
                           product.accumulate ? 1.0F : 0.0F, c, product.stride);
  dnnl::error::wrap_c_api(status, "could not execute dnnl_sgemm");
}

/// Uses register tiles instead of oneDNN if the permitted instruction set has FMA: blocks are small, oneDNN
/// copies both operands first, and the tiles are about twice as fast.
product_function fastest() {
  auto isa = dnnl_get_effective_cpu_isa();
  auto has = [&](dnnl_cpu_isa_t required) { return (isa & required) == static_cast<int>(required); };
  if (has(dnnl_cpu_isa_avx512_core)) return tiles_of_avx512;
  return has(dnnl_cpu_isa_avx2) ? tiles_of_avx2 : by_sgemm;
}

}  // namespace

void block_product(const block_product_shape& product, const float* a, const float* b, float* c) {
  static const auto multiply = fastest();
  multiply(product, a, b, c);
}

}  // namespace troupe::cpu
