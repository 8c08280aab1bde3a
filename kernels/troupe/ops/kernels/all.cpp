#include "troupe/ops/kernels/all.hpp"

namespace troupe {

const device_kernels& kernels_on(device target) {
  return target.type == device::kind::cpu ? cpu_kernels() : cuda_kernels(target);
}

}  // namespace troupe
