#pragma once
#include "troupe/autograd/variable.hpp"

namespace troupe {

/// Records the ReLU that the operation that computed `y` has fused: y.value is the ReLU's output.
variable after_fused_relu(const variable& y);

}  // namespace troupe
