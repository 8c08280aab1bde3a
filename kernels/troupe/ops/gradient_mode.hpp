#pragma once
#include <cstdint>

namespace troupe {

/// What a weight gradient does with what its tensor holds: `assign` writes the first contribution over it,
/// `accumulate` adds to it.
enum class gradient_mode : std::uint8_t { assign, accumulate };

}  // namespace troupe
