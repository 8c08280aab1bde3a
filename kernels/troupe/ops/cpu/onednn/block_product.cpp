#include "troupe/ops/cpu/block_product.hpp"

#include <oneapi/dnnl/dnnl.hpp>

namespace troupe::cpu {

// For blocks this small sgemm is ahead of matmul primitives, which are slow on rows that are not dense.
void block_product(const block_product_shape& of, const float* a, const float* b, float* c) {
  auto status = dnnl_sgemm(of.left_is_transposed ? 'T' : 'N', of.right_is_transposed ? 'T' : 'N', of.rows,
                           of.columns, of.inner, 1.0F, a, of.left_stride, b, of.right_stride,
                           of.accumulate ? 1.0F : 0.0F, c, of.stride);
  dnnl::error::wrap_c_api(status, "could not execute dnnl_sgemm");
}

}  // namespace troupe::cpu
