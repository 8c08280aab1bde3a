#pragma once
#include "troupe/ops/kernels/products.hpp"

namespace troupe::cpu {

/// As in troupe/ops/kernels/products.hpp. Equal shapes and numbers of threads give equal bits.
void matrix_product(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c);

// Implemented in cpu/onednn/ or cpu/plain/, as configured.

/// Whether `multiply` supports bf16 on this machine.
bool multiplies_bf16();

/// A product for operands of f32 or, if it does, bf16; no extent is 0, and `of.relu` is not set.
void multiply(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
              tensor& c);

}  // namespace troupe::cpu
