#include "troupe/tensor/cuda/pitched_copy.hpp"

#include <algorithm>

#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe {
namespace {

/// Of every GPU (cudaDeviceProp::memPitch). Beyond it cudaMemcpy2DAsync refuses even a single row.
constexpr std::size_t most_pitch_bytes = 0x7fffffff;

void queue_row(const pitched_copy& what, std::size_t index, std::size_t size_bytes, cudaStream_t stream) {
  check(cudaMemcpyAsync(what.to + index * what.to_pitch_bytes, what.from + index * what.from_pitch_bytes,
                        size_bytes, cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

// Rows of more than 2 GiB are copied one by one: a GPU's memory holds few of them.
void queue(const pitched_copy& what, cudaStream_t stream) {
  if (what.width_bytes == 0 || what.num_rows == 0) return;
  if (what.to_pitch_bytes == what.width_bytes && what.from_pitch_bytes == what.width_bytes)
    return queue_row(what, 0, what.width_bytes * what.num_rows, stream);
  if (std::max(what.to_pitch_bytes, what.from_pitch_bytes) <= most_pitch_bytes)
    return check(cudaMemcpy2DAsync(what.to, what.to_pitch_bytes, what.from, what.from_pitch_bytes,
                                   what.width_bytes, what.num_rows, cudaMemcpyDeviceToDevice, stream));
  for (std::size_t i = 0; i < what.num_rows; ++i) queue_row(what, i, what.width_bytes, stream);
}

}  // namespace troupe
