#pragma once
#include <cstddef>
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe::optim {

/// Elements [first, first + count) of parameter number `index` of those that an optimizer was made for.
struct parameter_part {
  std::size_t index = 0;
  std::int64_t first = 0, count = 0;
};

/// These elements of a tensor of the parameter's shape, or of an undefined one.
inline tensor elements_of(const tensor& all, const parameter_part& which) {
  if (!all.defined()) return {};
  return all.reshape({all.num_elements()}).rows(which.first, which.count);
}

}  // namespace troupe::optim
