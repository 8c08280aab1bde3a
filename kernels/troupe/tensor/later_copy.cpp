#include "troupe/tensor/later_copy.hpp"

#include <utility>

#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {

later_copy::later_copy(tensor source) : source_(std::move(source)) {
  if (source_.device().type == device::kind::cuda) computed_ = mark_cuda(source_.device().index);
}

later_copy::later_copy(later_copy&&) noexcept = default;
later_copy& later_copy::operator=(later_copy&&) noexcept = default;
later_copy::~later_copy() = default;

bool later_copy::is_ready() const { return !computed_ || computed_->is_reached(); }

tensor later_copy::take() {
  auto source = std::exchange(source_, {});
  if (!computed_) return source;
  auto result = tensor::empty(source.shape(), source.dtype());
  copy_from_cuda_after(*std::exchange(computed_, {}), result.bytes().data(), source.device().index,
                       std::as_const(source).bytes().data(), source.size_bytes());
  return result;
}

}  // namespace troupe
