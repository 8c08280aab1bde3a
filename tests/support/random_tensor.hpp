#pragma once
#include <string_view>

#include "troupe/random/fill.hpp"

namespace troupe::testing {

/// f32, uniform in [-1, 1], different for each name.
inline tensor random_tensor(shape extents, std::string_view name) {
  auto result = tensor::empty(std::move(extents));
  fill_uniform(result, -1, 1, 2024, name);
  return result;
}

}  // namespace troupe::testing
