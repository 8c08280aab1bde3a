#include "troupe/tensor/tensor.hpp"

#include <algorithm>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/tensor/detail/device_memory.hpp"
#include "troupe/tensor/memory.hpp"
#include "troupe/tensor/out_of_memory.hpp"

namespace troupe {

tensor tensor::wrap(std::shared_ptr<void> owner, std::byte* elements, troupe::shape extents,
                    troupe::dtype type, troupe::device target) {
  tensor result;
  result.owner_ = std::move(owner);
  result.elements_ = elements;
  result.shape_ = std::move(extents);
  result.dtype_ = type;
  result.device_ = target;
  return result;
}

namespace {

std::shared_ptr<void> memory_for(const shape& extents, troupe::dtype type, troupe::device target) {
  auto size_bytes = static_cast<std::size_t>(extents.num_elements()) * troupe::size_bytes(type);
  try {
    return allocate(size_bytes, target);
  } catch (const std::bad_alloc&) {
    throw out_of_memory("[tensor] no memory on " + to_string(target) + " for " +
                        std::string(to_string(type)) + to_string(extents) + ", " +
                        std::to_string(size_bytes) + " bytes: use smaller extents or a smaller batch");
  }
}

}  // namespace

tensor tensor::empty(troupe::shape extents, troupe::dtype type, troupe::device target) {
  auto memory = memory_for(extents, type, target);
  auto* elements = static_cast<std::byte*>(memory.get());
  return wrap(std::move(memory), elements, std::move(extents), type, target);
}

tensor tensor::zeros(troupe::shape extents, troupe::dtype type, troupe::device target) {
  auto result = empty(std::move(extents), type, target);
  result.fill_zero();
  return result;
}

tensor tensor::full(troupe::shape extents, float value) {
  auto result = empty(std::move(extents));
  std::ranges::fill(result.values<float>(), value);
  return result;
}

tensor tensor::copy_of(std::span<const std::byte> values, troupe::shape extents, troupe::dtype type) {
  auto result = empty(std::move(extents), type);
  if (values.size() != result.size_bytes())
    throw_invalid("tensor::from",
                  std::to_string(result.num_elements()) + " elements for shape " + to_string(result.shape_),
                  std::to_string(values.size() / troupe::size_bytes(type)));
  std::ranges::copy(values, result.elements_);
  return result;
}

void tensor::require(troupe::dtype type) const {
  if (!defined())
    throw_invalid("tensor::values", std::string(to_string(type)) + " elements", "an undefined tensor");
  if (device_.type != troupe::device::kind::cpu)
    throw_invalid("tensor::values", "a tensor in the memory of the CPU (move it there with .to(device()))",
                  describe(*this));
  if (type != dtype_) throw_invalid("tensor::values", to_string(type), describe(*this));
}

tensor tensor::reshape(troupe::shape extents) const {
  if (extents.num_elements() != num_elements())
    throw_invalid("tensor::reshape", "a shape of " + std::to_string(num_elements()) + " elements",
                  to_string(extents));
  auto result = *this;
  result.shape_ = std::move(extents);
  return result;
}

tensor tensor::rows(std::int64_t first, std::int64_t count) const {
  auto total = shape_[0];
  if (first < 0 || count < 0 || first > total - count)
    throw_invalid("tensor::rows", "rows within [0, " + std::to_string(total) + ")",
                  std::to_string(count) + " rows from " + std::to_string(first));
  auto extents = shape_.extents();
  extents[0] = count;
  auto result = *this;
  result.shape_ = troupe::shape(std::move(extents));
  auto row_bytes = total == 0 ? 0 : size_bytes() / static_cast<std::size_t>(total);
  result.elements_ += static_cast<std::size_t>(first) * row_bytes;
  return result;
}

tensor tensor::clone() const {
  if (!defined()) return {};
  auto result = empty(shape_, dtype_, device_);
  result.copy_from(*this);
  return result;
}

tensor tensor::to(troupe::device target) const {
  if (!defined() || target == device_) return *this;
  auto result = empty(shape_, dtype_, target);
  result.copy_from(*this);
  return result;
}

void tensor::copy_from(const tensor& source) {
  if (shape_ != source.shape_ || dtype_ != source.dtype_)
    throw_invalid("tensor::copy_from", describe(*this), describe(source));
  if (elements_ == source.elements_ && device_ == source.device_) return;
  copy_bytes(bytes().data(), device_, source.bytes().data(), source.device_, size_bytes());
}

void tensor::fill_zero() {
  if (device_.type == troupe::device::kind::cpu)
    std::ranges::fill(bytes(), std::byte{0});
  else
    fill_zero_cuda(bytes().data(), device_, size_bytes());
}

std::string describe(const tensor& value) {
  if (!value.defined()) return "undefined";
  auto text = std::string(to_string(value.dtype())) + to_string(value.shape());
  return value.device().type == device::kind::cpu ? text : text + " on " + to_string(value.device());
}

}  // namespace troupe
