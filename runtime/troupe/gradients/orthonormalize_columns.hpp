#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe::gradients {

/// Makes the columns of a matrix f32 [M, R] in CPU memory orthonormal, in place and in their order. Modified
/// Gram-Schmidt, with sums in f64 in the order of rows: equal bits give equal bits everywhere. A column that
/// the ones before it span (all but 1e-6 of its length) becomes zero.
void orthonormalize_columns(tensor matrix);

}  // namespace troupe::gradients
