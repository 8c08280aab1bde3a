#pragma once
#include <string>

#include "troupe/tensor/device.hpp"

namespace troupe {

/// What the numeric class says of a GPU that is there. The build picks ops/cuda/ or ops/cuda_absent/.
std::string gpu_class(device where);

}  // namespace troupe
