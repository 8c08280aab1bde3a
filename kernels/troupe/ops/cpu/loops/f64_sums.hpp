#pragma once
#include <cstdint>

namespace troupe::cpu {

// Sums of arrays in f64, for norms over whole models. Element i is added to lane i % 32 and the lanes are
// added in a tree, so the bits do not depend on the vector width. Squares are f64 and cannot overflow.

double sum_of(const float* x, std::int64_t size);
double sum_of_squares(const float* x, std::int64_t size);
double sum_of_squared_differences(const float* a, const float* b, std::int64_t size);

}  // namespace troupe::cpu
