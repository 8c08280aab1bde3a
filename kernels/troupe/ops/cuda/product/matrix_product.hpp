#pragma once
#include "troupe/ops/kernels/products.hpp"

namespace troupe::cuda {

/// As in troupe/ops/kernels/products.hpp, on one GPU, with sums in f32, and products too unless
/// set_matmul_precision has chosen TF32 (which tiled_product() never uses). Computed by cuBLASLt; if it has
/// no algorithm with the bias, by cuBLASLt without it and product_epilogue(); if it has no algorithm at all,
/// by tiled_product(). The choice depends only on shape, dtypes and alignment, so equal arguments give equal
/// bits on equal GPUs with one version of cuBLASLt. Throws cuda_error, naming the product.
void matrix_product(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c);

}  // namespace troupe::cuda
