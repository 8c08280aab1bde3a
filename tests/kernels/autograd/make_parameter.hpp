#pragma once

#include <string>

#include "support/random_tensor.hpp"
#include "troupe/autograd/parameter.hpp"

namespace troupe::testing {

/// Random values that follow from the name.
inline parameter make_parameter(const std::string& name, const shape& extents) {
  return {name, random_tensor(extents, name), tensor::zeros(extents)};
}

}  // namespace troupe::testing
