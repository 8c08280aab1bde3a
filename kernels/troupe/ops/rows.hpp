#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// Gather and scatter of rows along axis 0, with i64 or i32 indices of any shape. An index outside [0, N)
// throws std::invalid_argument that names its position and value, before anything is written.

/// out[i] = values[indices[i]]. values: [N, ...] of any dtype; out: the axes of indices, then those of a row.
tensor gather_rows(const tensor& values, const tensor& indices);

/// sum[indices[i]] += rows[i], in ascending order of i, so that the bits do not depend on the number of
/// threads. With `assign`, sum is set to zero first. rows: the axes of indices, then those of a row, of f32,
/// bf16 or f16; sum: [N, ...] f32.
void scatter_add_rows(const tensor& indices, const tensor& rows, tensor sum,
                      gradient_mode mode = gradient_mode::accumulate);

}  // namespace troupe
