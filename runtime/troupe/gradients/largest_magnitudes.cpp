#include "troupe/gradients/largest_magnitudes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

namespace troupe::gradients {
namespace {

/// The bits of |x| as an integer, which has the order of the magnitudes.
std::uint32_t magnitude_bits(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7fffffffU; }

// Selection by histogram (one round of radix select): a bin holds the magnitudes with the same exponent and
// first three mantissa bits. The first pass over x counts the bins and finds the one with the k-th largest
// magnitude; the second collects the elements in that bin and above, among which std::nth_element finds the
// k-th largest.
constexpr int bits_within_bin = 20;
constexpr std::size_t num_bins = std::size_t{1} << (31 - bits_within_bin);

/// The smallest magnitude bits of the bin that contains the k-th largest.
std::uint32_t begin_of_last_bin(std::span<const float> x, std::size_t k) {
  std::array<std::size_t, num_bins> counts{};
  for (auto each : x) ++counts[magnitude_bits(each) >> bits_within_bin];
  auto bin = num_bins - 1;
  for (auto num_left = k; num_left > counts[bin]; --bin) num_left -= counts[bin];
  return static_cast<std::uint32_t>(bin << bits_within_bin);
}

/// The magnitude bits of the k-th largest of these.
std::uint32_t find_kth(std::span<const float> x, const std::vector<std::int32_t>& indices, std::size_t k) {
  std::vector<std::uint32_t> bits;
  bits.reserve(indices.size());
  for (auto index : indices) bits.push_back(magnitude_bits(x[static_cast<std::size_t>(index)]));
  auto kth = bits.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(bits.begin(), kth, bits.end(), std::greater<>());
  return *kth;
}

}  // namespace

std::vector<std::int32_t> largest_magnitudes(std::span<const float> x, std::size_t k) {
  if (k == 0) return {};
  auto begin = begin_of_last_bin(x, k);
  std::vector<std::int32_t> candidates;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (magnitude_bits(x[i]) >= begin) candidates.push_back(static_cast<std::int32_t>(i));
  auto smallest = find_kth(x, candidates, k);
  auto bits_at = [x](std::int32_t index) { return magnitude_bits(x[static_cast<std::size_t>(index)]); };
  auto num_larger = std::ranges::count_if(
      candidates, [&bits_at, smallest](std::int32_t index) { return bits_at(index) > smallest; });
  auto num_equal = static_cast<std::ptrdiff_t>(k) - num_larger;
  std::vector<std::int32_t> result;
  result.reserve(k);
  for (auto index : candidates)
    if (auto bits = bits_at(index); bits > smallest || (bits == smallest && num_equal-- > 0))
      result.push_back(index);
  return result;
}

}  // namespace troupe::gradients
