#pragma once
#include "troupe/autograd/variable.hpp"

namespace troupe {

/// Records the relu that the operation behind `y` applied in its own pass: y.value is relu's output.
variable after_fused_relu(const variable& y);

}  // namespace troupe
