#pragma once
#include <string>

#include "troupe/tensor/device.hpp"

namespace troupe {

/// How many GPUs this process can use, as cuda:0 and so on; 0 where Troupe was built without CUDA.
int num_cuda_devices();

/// Throws bad_input if the device is not there: what is missing, and how to get it.
void require_device(device where);

/// "CPU", or a GPU's model such as "NVIDIA H100 80GB HBM3". Throws bad_input if the device is not there.
std::string device_name(device where);

/// Operations on a GPU return when they are queued; this returns when all that was queued has been done, and
/// throws what went wrong in it. Nothing to do for the CPU. Throws bad_input if the device is not there.
void synchronize(device where);

/// The CUDA that Troupe was built with, "13.0"; empty if it was built without.
std::string cuda_version();

}  // namespace troupe
