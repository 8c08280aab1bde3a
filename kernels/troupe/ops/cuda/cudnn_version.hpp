#pragma once
#include <string>

namespace troupe::cuda {

/// "9.19.0": of the cuDNN that convolutions use here; empty if there is none. The build picks cudnn/ or
/// cudnn_absent/.
std::string cudnn_version();

}  // namespace troupe::cuda
