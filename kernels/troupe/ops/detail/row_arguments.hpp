#pragma once
#include <string_view>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Throws std::invalid_argument unless `indices` are i64 or i32 on device `target`.
void require_indices(std::string_view operation, const tensor& indices, device target);

/// The shape of gathered rows: the axes of indices, then those of a row of `values`.
shape gathered_extents(const tensor& values, const tensor& indices);

}  // namespace troupe
