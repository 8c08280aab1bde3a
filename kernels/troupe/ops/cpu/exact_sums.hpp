#pragma once
#include <cstdint>

namespace troupe::cpu {

// Sums in f64 of plain arrays, for norms over whole models. Element i is added to lane i % 32 and the lanes
// are added in a tree: the same bits at every vector width. Squares are f64 too and cannot overflow.

double sum_of(const float* x, std::int64_t size);
double sum_of_squares(const float* x, std::int64_t size);
double sum_of_squared_differences(const float* a, const float* b, std::int64_t size);

}  // namespace troupe::cpu
