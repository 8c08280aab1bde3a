#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "troupe/tensor/device.hpp"

namespace troupe {

class block_cache;

/// The cache of one device, there until the process ends. Throws bad_input if the device is not there.
block_cache& cache_of(device where);

/// The cache of what this thread records on the device (captured_step.hpp), or null if it records nothing.
std::shared_ptr<block_cache> recording_cache_of(device where);

/// Copies between any two devices. Returns when the bytes in the CPU's memory, on whichever side, are the
/// caller's again; a GPU copies in its turn, after what was queued before and ahead of what comes later.
void copy_bytes(void* to, device to_where, const void* from, device from_where, std::size_t size_bytes);

// Of GPUs; the build picks cuda/ or cuda_absent/. Beside these, `num_cuda_devices` and `cuda_version`.
block_cache& cuda_cache_of(int index);
std::shared_ptr<block_cache> recording_cache_of_cuda(int index);
void copy_bytes_cuda(void* to, device to_where, const void* from, device from_where, std::size_t size_bytes);
void fill_zero_cuda(void* memory, device where, std::size_t size_bytes);
void require_cuda(int index);
std::string cuda_name(int index);
void synchronize_cuda(int index);

}  // namespace troupe
