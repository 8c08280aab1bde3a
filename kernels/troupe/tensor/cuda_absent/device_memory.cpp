#include "troupe/tensor/device_memory.hpp"

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

[[noreturn]] void refuse(int index) {
  throw bad_input(
      "cuda:" + std::to_string(index) +
      " is not there: Troupe was built without CUDA; install the CUDA Toolkit (nvcc must be on the "
      "PATH) and build with cmake --preset cuda, or use cpu");
}

}  // namespace

block_cache& cuda_cache_of(int index) { refuse(index); }

void copy_bytes_cuda(void*, device to_where, const void*, device from_where, std::size_t) {
  refuse(to_where.type == device::kind::cuda ? to_where.index : from_where.index);
}

void fill_zero_cuda(void*, device where, std::size_t) { refuse(where.index); }

}  // namespace troupe
