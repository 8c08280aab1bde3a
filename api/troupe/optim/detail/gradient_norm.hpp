#pragma once
#include <span>
#include <vector>

#include "troupe/autograd/parameter.hpp"

namespace troupe::optim::detail {

/// A parameter, or a piece of one, and its index among all parameters of the model, sorted by name.
struct indexed_parameter {
  std::int64_t index = 0;
  const parameter* target = nullptr;
  std::int64_t first = 0;  ///< the first element of the piece, which begins a block
};

/// The squares of the gradients of `parameters`, as i64 [n], n > 0. Of each parameter: its index, the number
/// of a block of its elements (block_squares), how many blocks follow from it on, and the bits of their f64
/// sums. Parameters without a gradient are left out.
tensor gradient_squares(std::span<const indexed_parameter> parameters);

/// Computes the norm over all gradients of the model from results of `gradient_squares`, of which each block
/// may come from anywhere, once. They are added up in the order of blocks and indices, so that the bits do
/// not depend on who holds what. Infinite or NaN if an element is. Throws std::runtime_error for malformed
/// tensors.
double combined_norm(const std::vector<tensor>& squares);

}  // namespace troupe::optim::detail
