#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Where the k numbers of the largest magnitude are, in ascending order of places: of equal ones those that
/// come first; NaN is larger than all numbers. Unlike the operation top_k it does not sort, so that its time
/// is that of two passes however large k is. 0 <= k <= x.size() < 2^31.
std::vector<std::int32_t> largest_magnitudes(std::span<const float> x, std::size_t k);

}  // namespace troupe
