#include "troupe/ops/cpu/block_product.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include "troupe/ops/cpu/onednn/block_tiles.hpp"
#include "troupe/ops/cpu/onednn/library_threads.hpp"

namespace troupe::cpu {
namespace {

using product_function = void (*)(const block_product_shape& of, const float* a, const float* b, float* c);

void by_sgemm(const block_product_shape& of, const float* a, const float* b, float* c) {
  library_threads alone(1);
  auto status = dnnl_sgemm(of.left_is_transposed ? 'T' : 'N', 'N', of.rows, of.columns, of.inner, 1.0F, a,
                           of.left_stride, b, of.right_stride, of.accumulate ? 1.0F : 0.0F, c, of.stride);
  dnnl::error::wrap_c_api(status, "could not execute dnnl_sgemm");
}

/// Blocks are too small for oneDNN, which copies both operands first: where the instruction set that it may
/// use fuses multiply-adds, the tiles are about twice as fast.
product_function fastest() {
  auto isa = dnnl_get_effective_cpu_isa();
  auto has = [&](dnnl_cpu_isa_t what) { return (isa & what) == static_cast<int>(what); };
  if (has(dnnl_cpu_isa_avx512_core)) return tiles_of_avx512;
  return has(dnnl_cpu_isa_avx2) ? tiles_of_avx2 : by_sgemm;
}

}  // namespace

void block_product(const block_product_shape& of, const float* a, const float* b, float* c) {
  static const auto multiply = fastest();
  multiply(of, a, b, c);
}

}  // namespace troupe::cpu
