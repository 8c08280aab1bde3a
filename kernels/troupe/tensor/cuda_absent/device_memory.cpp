#include "troupe/tensor/device_memory.hpp"

#include "troupe/error/errors.hpp"

namespace troupe {

block_cache& cuda_cache_of(int index) {
  require_cuda(index);
  throw std::logic_error("a GPU without CUDA");
}

std::shared_ptr<block_cache> recording_cache_of_cuda(int) { return nullptr; }

void copy_bytes_cuda(void*, device to_where, const void*, device from_where, std::size_t) {
  require_cuda(to_where.type == device::kind::cuda ? to_where.index : from_where.index);
}

void fill_zero_cuda(void*, device where, std::size_t) { require_cuda(where.index); }

}  // namespace troupe
