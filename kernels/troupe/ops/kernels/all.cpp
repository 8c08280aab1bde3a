#include "troupe/ops/kernels/all.hpp"

namespace troupe {

const device_kernels& kernels_on(device where) {
  return where.type == device::kind::cpu ? cpu_kernels() : cuda_kernels(where);
}

}  // namespace troupe
