#include "troupe/tensor/devices.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/tensor/device_memory.hpp"

namespace troupe {

void require_device(device where) {
  if (where.type == device::kind::cuda) return require_cuda(where.index);
  if (where.index != 0)
    throw bad_input(to_string(where) +
                    " is not there: a machine has one CPU device, cpu:0, for all its cores");
}

std::string device_name(device where) {
  require_device(where);
  return where.type == device::kind::cuda ? cuda_name(where.index) : "CPU";
}

void synchronize(device where) {
  require_device(where);
  if (where.type == device::kind::cuda) synchronize_cuda(where.index);
}

}  // namespace troupe
