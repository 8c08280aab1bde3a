#pragma once
#include <algorithm>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::testing {

/// Whether dtype, shape and bytes are equal; the devices may differ. Undefined tensors equal each other.
inline bool same_bits(const tensor& a, const tensor& b) {
  return a.defined() == b.defined() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::ranges::equal(a.to({}).bytes(), b.to({}).bytes());
}

/// The same names in the same order, and the same bits.
inline bool same_bits(const std::vector<named_tensor>& a, const std::vector<named_tensor>& b) {
  return std::ranges::equal(a, b, [](const named_tensor& x, const named_tensor& y) {
    return x.name == y.name && same_bits(x.value, y.value);
  });
}

}  // namespace troupe::testing
