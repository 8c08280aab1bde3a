#include "troupe/tensor/async_host_copy.hpp"

#include <utility>

#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {

async_host_copy::async_host_copy(tensor source) : source_(std::move(source)) {
  if (source_.device().type == device::kind::cuda) computed_ = record_cuda(source_.device().index);
}

async_host_copy::async_host_copy(async_host_copy&&) noexcept = default;
async_host_copy& async_host_copy::operator=(async_host_copy&&) noexcept = default;
async_host_copy::~async_host_copy() = default;

bool async_host_copy::is_ready() const { return !computed_ || computed_->is_reached(); }

tensor async_host_copy::take() {
  auto source = std::exchange(source_, {});
  if (!computed_) return source;
  auto result = tensor::empty(source.shape(), source.dtype());
  copy_from_cuda_after(*std::exchange(computed_, {}), result.bytes().data(), source.device().index,
                       std::as_const(source).bytes().data(), source.size_bytes());
  return result;
}

}  // namespace troupe
