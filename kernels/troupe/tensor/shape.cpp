#include "troupe/tensor/shape.hpp"

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// The maximum number of elements whose size in bytes fits into std::int64_t for every dtype.
constexpr auto most_elements = std::int64_t{1} << 58;

}  // namespace

shape::shape(std::initializer_list<std::int64_t> extents) : shape(std::vector<std::int64_t>(extents)) {}

shape::shape(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {
  for (auto extent : extents_) {
    if (extent < 0) throw_invalid("shape", "extents >= 0", to_string(*this));
    if (__builtin_mul_overflow(num_elements_, extent, &num_elements_) || num_elements_ > most_elements)
      throw_invalid("shape", "at most 2^58 elements", to_string(*this));
  }
}

std::int64_t shape::operator[](int axis) const {
  int at = axis < 0 ? axis + rank() : axis;
  if (at < 0 || at >= rank()) throw_invalid("shape", "an axis of " + to_string(*this), std::to_string(axis));
  return extents_[static_cast<std::size_t>(at)];
}

std::string to_string(const shape& extents) {
  std::string text = "[";
  for (auto extent : extents.extents()) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

}  // namespace troupe
