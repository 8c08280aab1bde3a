#include "troupe/random/initial_weight_stream.hpp"

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

philox_stream initial_weight_stream(std::size_t num_elements, std::uint64_t seed, std::string_view name) {
  constexpr std::size_t most_elements = std::size_t{4} << 32;
  if (num_elements > most_elements)
    throw_invalid("initial weights", "at most 2^34 elements in a parameter", std::to_string(num_elements));
  auto hash = hash_of_name(name);
  return {seed,
          random_purpose::initial_weights,
          {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32), 0}};
}

}  // namespace troupe
