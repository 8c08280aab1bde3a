#pragma once
#include <cstdint>

#include "troupe/tensor/shape.hpp"

namespace troupe {

/// How many rows of a weight's gradient an operation computes at a time when it brings them by rows
/// (operation::backward_weight_by_rows); all of them, or more, where the weight is small.
std::int64_t gradient_rows_at_a_time(const shape& weight);

}  // namespace troupe
