#pragma once
#include "troupe/ops/kernels/products.hpp"

namespace troupe::cpu {

/// As in troupe/ops/kernels/products.hpp, with sums in the order that packed_product
/// (troupe/ops/cpu/product/) has: equal values give equal bits, whatever the shapes around them.
void matrix_product(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c);

}  // namespace troupe::cpu
