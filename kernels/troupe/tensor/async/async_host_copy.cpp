#include "troupe/tensor/async/async_host_copy.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {

async_host_copy::async_host_copy(tensor source, host_copy_use use) : source_(std::move(source)), use_(use) {
  if (source_.device().type == device::kind::cuda) computed_ = record_cuda(source_.device().index);
}

async_host_copy::async_host_copy(async_host_copy&&) noexcept = default;
async_host_copy& async_host_copy::operator=(async_host_copy&&) noexcept = default;
async_host_copy::~async_host_copy() = default;

bool async_host_copy::is_ready() const { return !computed_ || computed_->is_reached(); }

tensor async_host_copy::take() {
  if (!computed_) return std::exchange(source_, {});
  auto result = tensor::empty(source_.shape(), source_.dtype());
  take_into(result.bytes());
  return result;
}

void async_host_copy::take_into(std::span<std::byte> memory) {
  auto source = std::exchange(source_, {});
  auto bytes = std::as_const(source).bytes();
  if (memory.size() != bytes.size())
    throw_invalid("async_host_copy", std::to_string(bytes.size()) + " bytes", std::to_string(memory.size()));
  if (computed_)
    copy_from_cuda_after(*std::exchange(computed_, {}), use_, memory.data(), source.device().index,
                         bytes.data(), bytes.size());
  else
    std::ranges::copy(bytes, memory.begin());
}

}  // namespace troupe
