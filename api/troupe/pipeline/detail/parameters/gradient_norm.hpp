#pragma once
#include <span>
#include <vector>

#include "troupe/autograd/parameter.hpp"

namespace troupe::detail {

/// A parameter and its index among all parameters of the model, sorted by name.
struct indexed_parameter {
  std::int64_t index = 0;
  const parameter* target = nullptr;
};

/// Returns i64 [parameters, 2]: for each parameter its index and the bits of the f64 norm of its gradient (0
/// without a gradient).
tensor gradient_norms(std::span<const indexed_parameter> parameters);

/// Computes the norm over all gradients of the model from the stages' results of `gradient_norms`. The
/// squares are summed in the order of the indices, so that the bits do not depend on the partition into
/// stages. Infinite or NaN if an element is. Throws std::runtime_error for malformed tensors.
double combined_norm(const std::vector<tensor>& norms);

}  // namespace troupe::detail
