#pragma once
#include "troupe/ops/kernels/products.hpp"

namespace troupe::cuda {

/// How one operand lies in memory where it is not dense: how many elements lie between the beginnings of its
/// rows, and of the pairs' matrices. 0: as many as there are in one.
struct matrix_strides {
  std::int64_t row = 0, pair = 0;
  auto operator<=>(const matrix_strides&) const = default;
};

struct strided_product_shape {
  matrix_product_shape of;
  matrix_strides left = {}, right = {}, result = {};
  auto operator<=>(const strided_product_shape&) const = default;
};

/// As in troupe/ops/kernels/products.hpp, on one GPU, with sums in f32, and products too unless
/// set_matmul_precision has chosen TF32. Equal
/// arguments give equal bits on equal GPUs with one version of cuBLASLt.
void matrix_product(const matrix_product_shape& of, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c);

/// The same of operands that are dense but for the strides.
void strided_product(const strided_product_shape& shape, const tensor& a, const tensor& b, const tensor& bias,
                     tensor& c);

}  // namespace troupe::cuda
