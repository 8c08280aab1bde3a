#include "troupe/tensor/cuda/pitched_copy.hpp"

#include <algorithm>

#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe {
namespace {

/// The maximum pitch of all GPUs (cudaDeviceProp::memPitch); beyond it cudaMemcpy2DAsync fails even for one
/// row.
constexpr std::size_t max_pitch_bytes = 0x7fffffff;

void queue_row(const pitched_copy& copy, std::size_t index, std::size_t size_bytes, cudaStream_t stream) {
  check(cudaMemcpyAsync(copy.to + index * copy.to_pitch_bytes, copy.from + index * copy.from_pitch_bytes,
                        size_bytes, cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

// Rows of more than 2 GiB are copied one by one; a GPU's memory holds only a few.
void queue(const pitched_copy& copy, cudaStream_t stream) {
  if (copy.width_bytes == 0 || copy.num_rows == 0) return;
  if (copy.to_pitch_bytes == copy.width_bytes && copy.from_pitch_bytes == copy.width_bytes)
    return queue_row(copy, 0, copy.width_bytes * copy.num_rows, stream);
  if (std::max(copy.to_pitch_bytes, copy.from_pitch_bytes) <= max_pitch_bytes)
    return check(cudaMemcpy2DAsync(copy.to, copy.to_pitch_bytes, copy.from, copy.from_pitch_bytes,
                                   copy.width_bytes, copy.num_rows, cudaMemcpyDeviceToDevice, stream));
  for (std::size_t i = 0; i < copy.num_rows; ++i) queue_row(copy, i, copy.width_bytes, stream);
}

}  // namespace troupe
