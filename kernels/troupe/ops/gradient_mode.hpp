#pragma once
#include <cstdint>

namespace troupe {

/// How a gradient is written to its tensor: `assign` overwrites it, `accumulate` adds to it.
enum class gradient_mode : std::uint8_t { assign, accumulate };

}  // namespace troupe
