#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "troupe/tensor/shape.hpp"

namespace troupe {

/// The broadcast shape of a and b by NumPy's rule: shapes are aligned at their last axes, and axes that are
/// missing or of extent 1 repeat. Throws std::invalid_argument, naming operation and shapes, if two other
/// extents differ.
shape broadcast_shape(std::string_view operation, const shape& a, const shape& b);

/// The strides of up to three broadcast operands over the result. Adjacent axes that all operands traverse
/// contiguously are merged, so that there are as few axes as possible.
struct broadcast_plan {
  static constexpr std::size_t max_operands = 3;
  using offsets = std::array<std::int64_t, max_operands>;

  /// One axis of the result; an operand's stride is 0 where it repeats.
  struct axis {
    std::int64_t extent = 1;
    offsets strides = {};
  };
  std::vector<axis> outer;  ///< all axes but the last, outermost first
  axis run;                 ///< the last axis, with strides 0 or 1; extent 1 for a scalar

  std::int64_t num_runs() const;
  /// The offsets of the operands at run `index`; the result's offset is index * run.extent.
  offsets begin_of(std::int64_t index) const;
};

/// `result` is what the operands' shapes broadcast to.
broadcast_plan plan_broadcast(const shape& result, const std::vector<shape>& operands);

}  // namespace troupe
