#pragma once
#include <cstdint>

namespace troupe::cpu {

/// C = op(A) B, or C += with `accumulate`, of blocks of larger row-major matrices: a stride is the
/// distance between rows in memory. A transposed A lies as [inner, rows].
struct block_product_shape {
  std::int64_t rows = 0, columns = 0, inner = 0;
  std::int64_t left_stride = 0, right_stride = 0, stride = 0;
  bool left_is_transposed = false;
  bool accumulate = false;
};

/// Each element is one chain of fused multiply-adds in the order of the inner axis, from what is in C or from
/// +0. Runs on the calling thread only, for use within parallel_for. No extent is 0.
void block_product(const block_product_shape& product, const float* a, const float* b, float* c);

}  // namespace troupe::cpu
