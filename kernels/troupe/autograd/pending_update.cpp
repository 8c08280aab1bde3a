// Separate from parameter.cpp, so that programs that only read parameters do not link the operations.
#include <stdexcept>
#include <string>

#include "troupe/autograd/parameter.hpp"

namespace troupe {

void parameter::throw_pending() const {
  throw std::logic_error(
      "[parameter] expected " + name + to_string(extents) +
      " without a pending update, got one whose gradient is being reduced or whose step is "
      "still to come: call synchronize() on the optimizer, or wait_ready() on the parameter, "
      "before reading it");
}

}  // namespace troupe
