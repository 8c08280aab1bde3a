#include "troupe/ops/cuda/cudnn_version.hpp"
#include "troupe/ops/cuda/families.hpp"

namespace troupe::cuda {

/// All are refused by name.
conv2d_kernels conv2d() { return {}; }

std::string cudnn_version() { return ""; }

}  // namespace troupe::cuda
