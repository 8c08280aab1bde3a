#pragma once
#include <string_view>
#include <vector>

#include "troupe/ops/kernels/reduction.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe {

/// The axes of a reduction, resolved for one shape.
struct reduced_axes {
  shape kept, dropped;              ///< result shapes with the reduced axes as 1, and without them
  std::int64_t num_reduced = 1;     ///< number of elements reduced to one
  std::vector<reduced_axis> steps;  ///< at least one; adjacent axes are merged, innermost first
};

/// Throws std::invalid_argument if an axis does not exist or is given twice.
reduced_axes axes_of(std::string_view operation, const tensor& x, const reduction_options& options);

}  // namespace troupe
