#pragma once
#include <cstdint>
#include <string_view>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Fills `target` (f32) with numbers uniform in [low, high], low plus multiples of (high - low) / 2^24: a
/// pure function of seed, name and the element's index. Throws std::invalid_argument unless low < high.
void fill_uniform(tensor target, float low, float high, std::uint64_t seed, std::string_view name);

}  // namespace troupe
