#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "troupe/tensor/shape.hpp"

namespace troupe {

/// The shape of a operation b by NumPy's rule: shapes are aligned at their last axes, and axes of extent 1 or
/// missing repeat. Throws std::invalid_argument, naming the shapes, where two extents differ otherwise.
shape broadcast_shape(std::string_view operation, const shape& a, const shape& b);

/// How the elements of up to three operands meet those of a result, with as few axes as possible: neighbours
/// that all operands run through alike count as one.
struct broadcast_plan {
  static constexpr std::size_t max_operands = 3;
  using offsets = std::array<std::int64_t, max_operands>;

  /// Axes outermost first; the strides of an operand are 0 where it repeats.
  struct axis {
    std::int64_t extent = 1;
    offsets strides = {};
  };
  std::vector<axis> outer;  ///< all but the last
  axis run;                 ///< the last, with strides of 1 or 0; of extent 1 for a scalar

  std::int64_t num_runs() const;
  /// Where the operands' run `index` begins; the result's begins at index * run.extent.
  offsets begin_of(std::int64_t index) const;
};

/// `result` is what the operands' shapes broadcast to.
broadcast_plan plan_broadcast(const shape& result, const std::vector<shape>& operands);

}  // namespace troupe
