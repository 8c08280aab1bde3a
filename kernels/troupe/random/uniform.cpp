#include "troupe/random/uniform.hpp"

#include <algorithm>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/random/philox.hpp"

namespace troupe {
namespace {

constexpr std::size_t max_elements = std::size_t{4} << 32;

float unit_interval(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

}  // namespace

void fill_uniform(tensor target, float low, float high, std::uint64_t seed, std::string_view name) {
  if (!(low < high))
    throw_invalid("fill_uniform", "low < high", std::to_string(low) + " and " + std::to_string(high));
  auto elements = target.values<float>();
  if (elements.size() > max_elements)
    throw_invalid("fill_uniform", "at most 2^34 elements", describe(target));
  auto hash = hash_of_name(name);
  philox_stream words(seed, random_purpose::initial_weights,
                      {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32), 0});
  for (std::size_t first = 0; first < elements.size(); first += 4) {
    auto block = words.block(static_cast<std::uint32_t>(first / 4));
    for (std::size_t lane = 0; lane < std::min<std::size_t>(4, elements.size() - first); ++lane)
      elements[first + lane] = low + (high - low) * unit_interval(block[lane]);
  }
}

}  // namespace troupe
