#pragma once
#include <memory>
#include <utility>

#include "troupe/tensor/tensor.hpp"

namespace troupe::execution {

/// A view of the elements for another device to read. A receiver in this process is charged for what it gets:
/// without the view, for all memory that the elements lie in, which stays the sender's.
inline tensor uncharged(const tensor& value) {
  if (value.device().type != device::kind::cpu) return value;
  auto kept = std::make_shared<tensor>(value);
  auto* elements = kept->bytes().data();
  return tensor::wrap(std::move(kept), elements, value.shape(), value.dtype(), value.device());
}

}  // namespace troupe::execution
