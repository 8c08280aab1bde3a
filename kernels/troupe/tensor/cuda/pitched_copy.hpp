#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

namespace troupe {

/// `num_rows` times `width_bytes` within one GPU's memory. Rows begin `..._pitch_bytes` apart.
struct pitched_copy {
  std::byte* to;
  std::size_t to_pitch_bytes;
  const std::byte* from;
  std::size_t from_pitch_bytes;
  std::size_t width_bytes;
  std::size_t num_rows;
};

/// Queues the copy in the stream, for any extents. Throws cuda_error.
void queue(const pitched_copy& what, cudaStream_t stream);

}  // namespace troupe
