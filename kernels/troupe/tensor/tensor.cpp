#include "troupe/tensor/tensor.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

constexpr std::size_t alignment_bytes = 64;

std::shared_ptr<void> allocate(std::size_t size_bytes) {
  auto rounded =
      std::max(alignment_bytes, (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes);
  void* memory = std::aligned_alloc(alignment_bytes, rounded);
  if (!memory) throw std::bad_alloc();
  return {memory, std::free};
}

}  // namespace

tensor tensor::wrap(std::shared_ptr<void> owner, std::byte* elements, shape extents, dtype type,
                    device where) {
  tensor result;
  result.owner_ = std::move(owner);
  result.elements_ = elements;
  result.extents_ = std::move(extents);
  result.type_ = type;
  result.where_ = where;
  return result;
}

tensor tensor::empty(shape extents, dtype type, device where) {
  auto memory = allocate(static_cast<std::size_t>(extents.num_elements()) * troupe::size_bytes(type));
  auto* elements = static_cast<std::byte*>(memory.get());
  return wrap(std::move(memory), elements, std::move(extents), type, where);
}

tensor tensor::zeros(shape extents, dtype type, device where) {
  auto result = empty(std::move(extents), type, where);
  std::ranges::fill(result.bytes(), std::byte{0});
  return result;
}

tensor tensor::full(shape extents, float value) {
  auto result = empty(std::move(extents));
  std::ranges::fill(result.values<float>(), value);
  return result;
}

tensor tensor::copy_of(std::span<const std::byte> values, shape extents, dtype type) {
  auto result = empty(std::move(extents), type);
  if (values.size() != result.size_bytes())
    throw_invalid("tensor::from",
                  std::to_string(result.num_elements()) + " elements for shape " + to_string(result.extents_),
                  std::to_string(values.size() / troupe::size_bytes(type)));
  std::ranges::copy(values, result.elements_);
  return result;
}

void tensor::require(dtype type) const {
  if (!defined())
    throw_invalid("tensor::values", std::string(to_string(type)) + " elements", "an undefined tensor");
  if (type != type_) throw_invalid("tensor::values", to_string(type), describe(*this));
}

tensor tensor::reshape(shape extents) const {
  if (extents.num_elements() != num_elements())
    throw_invalid("tensor::reshape", "a shape of " + std::to_string(num_elements()) + " elements",
                  to_string(extents));
  auto result = *this;
  result.extents_ = std::move(extents);
  return result;
}

tensor tensor::rows(std::int64_t first, std::int64_t count) const {
  auto total = extents_[0];
  if (first < 0 || count < 0 || first > total - count)
    throw_invalid("tensor::rows", "rows within [0, " + std::to_string(total) + ")",
                  std::to_string(count) + " rows from " + std::to_string(first));
  auto extents = extents_.extents();
  extents[0] = count;
  auto result = *this;
  result.extents_ = shape(std::move(extents));
  auto row_bytes = total == 0 ? 0 : size_bytes() / static_cast<std::size_t>(total);
  result.elements_ += static_cast<std::size_t>(first) * row_bytes;
  return result;
}

tensor tensor::clone() const {
  if (!defined()) return {};
  auto result = empty(extents_, type_, where_);
  std::ranges::copy(bytes(), result.elements_);
  return result;
}

void tensor::copy_from(const tensor& source) {
  if (extents_ != source.extents_ || type_ != source.type_)
    throw_invalid("tensor::copy_from", describe(*this), describe(source));
  std::ranges::copy(source.bytes(), elements_);
}

std::string describe(const tensor& value) {
  if (!value.defined()) return "undefined";
  return std::string(to_string(value.type())) + to_string(value.extents());
}

}  // namespace troupe
