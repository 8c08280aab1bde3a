#pragma once
#include <cstdint>

#include "troupe/tensor/shape.hpp"

namespace troupe {

/// The number of rows in a block when an operation computes a weight's gradient by blocks of rows
/// (operation::backward_weight_by_rows). At least the number of all rows for a small weight.
std::int64_t gradient_rows_at_a_time(const shape& weight);

}  // namespace troupe
