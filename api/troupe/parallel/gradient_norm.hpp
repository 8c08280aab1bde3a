#pragma once
#include <span>
#include <vector>

#include "troupe/autograd/parameter.hpp"

namespace troupe {

/// A parameter and its place among all of the model, in name order.
struct placed_parameter {
  std::int64_t place = 0;
  const parameter* target = nullptr;
};

/// i64 [parameters, 2]: place, and the bits of the f64 norm of its gradient; 0 where there is none.
tensor gradient_norms(std::span<const placed_parameter> parameters);

/// The norm of all gradients together, from what `gradient_norms` gave in each stage. The squares are summed
/// in the order of the places, so that the bits do not depend on how the model was cut. Infinite or NaN if an
/// element is. Throws std::runtime_error for tensors of another form.
double combined_norm(const std::vector<tensor>& norms);

}  // namespace troupe
