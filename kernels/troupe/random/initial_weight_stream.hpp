#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "troupe/random/philox.hpp"

namespace troupe {

/// The random stream of the parameter with this full name. Throws std::invalid_argument for more than 2^34
/// elements.
philox_stream initial_weight_stream(std::size_t num_elements, std::uint64_t seed, std::string_view name);

}  // namespace troupe
