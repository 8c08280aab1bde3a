#pragma once
#include <string>

#include "troupe/tensor/device.hpp"

namespace troupe {

/// The part of numeric_class(device) that describes an existing GPU. Implemented in ops/cuda/ or
/// ops/cuda_absent/, as configured.
std::string gpu_class(device target);

}  // namespace troupe
