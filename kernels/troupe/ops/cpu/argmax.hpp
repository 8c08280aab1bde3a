#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/ops/kernels/reduction.hpp"

namespace troupe::cpu {

/// The entry of reduction_kernels.
void argmax(const tensor& x, const reduced_axis& along, const tensor& largest, tensor& index);

/// How many indices of `elements` each are worth a thread.
inline std::int64_t grain_of(std::int64_t elements) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, elements));
}

inline std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace troupe::cpu
