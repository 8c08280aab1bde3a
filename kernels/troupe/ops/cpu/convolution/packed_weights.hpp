#pragma once
#include "troupe/ops/cpu/product/product_loops.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// A matrix [rows, inner] as panels of A, to be multiplied with many others.
class packed_weights {
 public:
  packed_weights(const float* weights, std::int64_t rows, std::int64_t inner, const product_loops& loops);

  std::int64_t inner() const { return inner_; }
  /// C from a block of B in panels, whose inner axis begins at `first_inner`, a multiple of inner_block; only
  /// the last block is followed by bias and ReLU.
  void multiply(const float* b, std::int64_t columns, std::int64_t first_inner, const block_target& to) const;

 private:
  std::int64_t rows_, inner_;
  const product_loops* loops_;
  tensor panels_;
};

}  // namespace troupe::cpu
