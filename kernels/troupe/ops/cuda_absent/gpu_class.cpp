#include "troupe/ops/detail/gpu_class.hpp"

#include "troupe/tensor/devices.hpp"

namespace troupe {

std::string gpu_class(device target) {
  require_device(target);
  return "";
}

}  // namespace troupe
