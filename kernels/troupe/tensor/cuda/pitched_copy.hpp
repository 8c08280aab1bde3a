#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

namespace troupe {

/// A 2D copy within one GPU's memory: `num_rows` rows of `width_bytes`; rows begin `..._pitch_bytes` apart.
struct pitched_copy {
  std::byte* to;
  std::size_t to_pitch_bytes;
  const std::byte* from;
  std::size_t from_pitch_bytes;
  std::size_t width_bytes;
  std::size_t num_rows;
};

/// Queues the copy in the stream; supports extents beyond CUDA's limits. Throws cuda_error.
void queue(const pitched_copy& copy, cudaStream_t stream);

}  // namespace troupe
