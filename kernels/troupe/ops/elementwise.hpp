#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// f32 of any shape; operands must have equal shapes, else std::invalid_argument.

/// y += alpha * x
void axpy(float alpha, const tensor& x, tensor y);
/// a + b
tensor add(const tensor& a, const tensor& b);
/// x *= factor
void scale(tensor x, float factor);

}  // namespace troupe
