#include "troupe/ops/numeric_class.hpp"

#include "troupe/ops/detail/gpu_class.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe {

std::string numeric_class() { return "cpu-1"; }

std::string numeric_class(device target) {
  require_device(target);
  return target.type == device::kind::cpu ? numeric_class() : numeric_class() + "+" + gpu_class(target);
}

}  // namespace troupe
