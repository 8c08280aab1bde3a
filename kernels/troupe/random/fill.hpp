#pragma once

#include <cstdint>
#include <string_view>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Fills `target` (f32) with numbers uniform in [low, high], low plus multiples of (high - low) / 2^24: a
/// pure function of seed, name and the element's index. Throws std::invalid_argument unless low < high.
void fill_uniform(tensor target, float low, float high, std::uint64_t seed, std::string_view name);

/// Fills `target` (f32) with normally distributed numbers: a pure function of seed, name and the element's
/// index, with the same bits on every machine. Inverts the distribution function (Wichura 1988, algorithm AS
/// 241, PPND16) at uniform numbers that are odd multiples of 2^-25. Throws std::invalid_argument unless
/// standard_deviation >= 0.
void fill_normal(tensor target, float mean, float standard_deviation, std::uint64_t seed,
                 std::string_view name);

}  // namespace troupe
