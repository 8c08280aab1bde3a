#pragma once
#include <string_view>
#include <vector>

#include "troupe/ops/kernels/reduction.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe {

/// The axes of a reduction, worked out.
struct reduced_axes {
  shape kept, dropped;           ///< of the result: with the reduced axes as 1, and without them
  std::int64_t num_reduced = 1;  ///< elements that become one
  std::vector<reduced_axis>
      steps;  ///< at least one; neighbouring axes are one step, the innermost comes first
};

/// Throws std::invalid_argument if an axis is not there or is named twice.
reduced_axes axes_of(std::string_view operation, const tensor& x, const reduction_options& options);

}  // namespace troupe
