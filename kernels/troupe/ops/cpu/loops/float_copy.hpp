#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// The elements of an f32, bf16 or f16 tensor as f32: the tensor itself if it is f32.
tensor float_copy(const tensor& x);

/// Rounds f32 elements to the dtype of `to`, which has as many.
void store_floats(const tensor& from, tensor& to);

}  // namespace troupe::cpu
