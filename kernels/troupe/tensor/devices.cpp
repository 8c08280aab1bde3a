#include "troupe/tensor/devices.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {

void require_device(device target) {
  if (target.type == device::kind::cuda) return require_cuda(target.index);
  if (target.index != 0)
    throw bad_input(to_string(target) +
                    " is not there: a machine has one CPU device, cpu:0, for all its cores");
}

std::string device_name(device target) {
  require_device(target);
  return target.type == device::kind::cuda ? cuda_name(target.index) : "CPU";
}

void synchronize(device target) {
  require_device(target);
  if (target.type == device::kind::cuda) synchronize_cuda(target.index);
}

}  // namespace troupe
