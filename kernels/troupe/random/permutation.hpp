#pragma once
#include <cstdint>
#include <vector>

namespace troupe {

/// The numbers [0, n) in a random order: a pure function of its arguments, the same on every machine.
/// `stream` tells the permutations of one seed apart, for example by epoch. Fisher-Yates over 64-bit
/// Philox words; the bias of a position is below n / 2^64. Throws std::invalid_argument unless 0 <= n < 2^32.
std::vector<std::int64_t> permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream);

}  // namespace troupe
