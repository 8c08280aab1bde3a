#pragma once
#include <cstddef>
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe::optim {

/// Elements [first, first + count) of parameter `index` of an optimizer.
struct parameter_part {
  std::size_t index = 0;
  std::int64_t first = 0, count = 0;
};

/// A view of these elements of a tensor with the parameter's shape; undefined for an undefined tensor.
inline tensor elements_of(const tensor& all, const parameter_part& part) {
  if (!all.defined()) return {};
  return all.reshape({all.num_elements()}).rows(part.first, part.count);
}

}  // namespace troupe::optim
