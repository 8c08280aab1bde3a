#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::gradients {

/// Returns the indices of the k elements with the largest magnitude, in ascending order. Of equal magnitudes
/// the lower indices are chosen; NaN counts as the largest. Unlike the operation top_k it does not sort: it
/// takes two passes over x for every k. 0 <= k <= x.size() < 2^31.
std::vector<std::int32_t> largest_magnitudes(std::span<const float> x, std::size_t k);

}  // namespace troupe::gradients
