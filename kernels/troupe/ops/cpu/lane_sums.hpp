#pragma once
#include <cstdint>

namespace troupe::cpu {

// Sums over arrays in 16 lanes, element i in lane i modulo 16, which are then added in pairs: the same order,
// and so the same bits, at every vector width. In f32: for long arrays, sums of blocks are to be added in
// f64.

/// The sum of x[i]
float lane_sum(const float* x, std::int64_t size);
/// The sum of (x[i] - center)^2
float lane_sum_of_squares(const float* x, float center, std::int64_t size);
/// The sum of (x[i] - center) y[i]
float lane_sum_of_products(const float* x, float center, const float* y, std::int64_t size);

}  // namespace troupe::cpu
