#pragma once
#include <cstdint>

#include "troupe/ops/kernels/reduction.hpp"

namespace troupe::cpu {

/// The first index along the axis at which x equals `largest`, its f32 maximum [outer, inner], or is NaN.
void argmax(const tensor& x, const reduced_axis& along, const tensor& largest, tensor& index);

inline std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace troupe::cpu
