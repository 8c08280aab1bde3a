#include "troupe/tensor/detail/device_memory.hpp"

#include "troupe/error/errors.hpp"

namespace troupe {

caching_allocator& cuda_allocator_of(int index) {
  require_cuda(index);
  throw std::logic_error("a GPU without CUDA");
}

std::shared_ptr<caching_allocator> cuda_capture_allocator_of(int) { return nullptr; }

void copy_bytes_cuda(void*, device to_where, const void*, device from_where, std::size_t) {
  require_cuda(to_where.type == device::kind::cuda ? to_where.index : from_where.index);
}

void fill_zero_cuda(void*, device target, std::size_t) { require_cuda(target.index); }

}  // namespace troupe
