#include "troupe/random/uniform.hpp"

#include <algorithm>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/random/initial_weight_stream.hpp"

namespace troupe {
namespace {

float unit_interval(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

}  // namespace

void fill_uniform(tensor target, float low, float high, std::uint64_t seed, std::string_view name) {
  if (!(low < high))
    throw_invalid("fill_uniform", "low < high", std::to_string(low) + " and " + std::to_string(high));
  auto elements = target.values<float>();
  auto words = initial_weight_stream(elements.size(), seed, name);
  for (std::size_t first = 0; first < elements.size(); first += 4) {
    auto block = words.block(static_cast<std::uint32_t>(first / 4));
    for (std::size_t lane = 0; lane < std::min<std::size_t>(4, elements.size() - first); ++lane)
      elements[first + lane] = low + (high - low) * unit_interval(block[lane]);
  }
}

}  // namespace troupe
