#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "troupe/random/philox.hpp"

namespace troupe {

/// The random words of the parameter of this name in the whole model. Throws std::invalid_argument for more
/// elements than there are words, 2^34.
philox_stream initial_weight_stream(std::size_t num_elements, std::uint64_t seed, std::string_view name);

}  // namespace troupe
