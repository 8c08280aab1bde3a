#pragma once
#include <string>

namespace troupe::cuda {

/// The version of cuDNN that convolutions use, "9.19.0"; empty if there is none. Implemented in cudnn/ or
/// cudnn_absent/, as configured.
std::string cudnn_version();

}  // namespace troupe::cuda
