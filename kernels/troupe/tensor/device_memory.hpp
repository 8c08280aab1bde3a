#pragma once
#include <cstddef>

#include "troupe/tensor/device.hpp"

namespace troupe {

class block_cache;

/// The cache of one device, there until the process ends. Throws bad_input if the device is not there.
block_cache& cache_of(device where);

/// Copies between any two devices; returns when the bytes are there.
void copy_bytes(void* to, device to_where, const void* from, device from_where, std::size_t size_bytes);

// Of GPUs; the build picks cuda/ or cuda_absent/.
block_cache& cuda_cache_of(int index);
void copy_bytes_cuda(void* to, device to_where, const void* from, device from_where, std::size_t size_bytes);
void fill_zero_cuda(void* memory, device where, std::size_t size_bytes);

}  // namespace troupe
