#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe::testing {

/// The f32 tensor rounded to `type`, so that a reference starts from the operation's actual input.
inline tensor rounded(const tensor& of, dtype type) {
  auto result = tensor::empty(of.shape(), type);
  auto from = of.values<float>();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (type == dtype::f32) result.values<float>()[i] = from[i];
    if (type == dtype::bf16) result.values<bfloat16>()[i] = bfloat16(from[i]);
    if (type == dtype::f16) result.values<float16>()[i] = float16(from[i]);
  }
  return result;
}

}  // namespace troupe::testing
