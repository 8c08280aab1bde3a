#pragma once
#include <span>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// The rows `indices` of `source` [N, ...], in that order, copied: [indices.size(), ...].
/// Throws std::invalid_argument for a scalar and for an index outside [0, N).
tensor gather_rows(const tensor& source, std::span<const std::int64_t> indices);

}  // namespace troupe
