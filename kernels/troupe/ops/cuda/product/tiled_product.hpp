#pragma once
#include "troupe/ops/kernels/products.hpp"

namespace troupe::cuda {

// Matrix products for cases in which cuBLASLt has no algorithm. Every sum is in f32, in ascending order of
// the inner axis, so the bits depend only on values and shape. Operands are as in
// troupe/ops/kernels/products.hpp.

/// The whole product, bias, relu and accumulation included. `product.inner` may be 0: then C is what the
/// bias, relu and accumulation make of 0.
void tiled_product(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
                   tensor& c);

/// c = product + bias, or c + product + bias with `extents.accumulate`, then max(c, 0) with `extents.relu`.
/// product: f32 [batch, rows, columns]. c may be `product` itself.
void product_epilogue(const matrix_product_shape& extents, const tensor& product, const tensor& bias,
                      tensor& c);

}  // namespace troupe::cuda
