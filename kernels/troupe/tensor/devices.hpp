#pragma once
#include <string>

#include "troupe/tensor/device.hpp"

namespace troupe {

/// The number of GPUs that this process can use (cuda:0, cuda:1, ...); 0 if Troupe was built without CUDA.
int num_cuda_devices();

/// Throws bad_input if the device does not exist; the message says what is missing and how to get it.
void require_device(device target);

/// "CPU", or the GPU's model such as "NVIDIA H100 80GB HBM3". Throws bad_input if the device does not exist.
std::string device_name(device target);

/// Waits until all queued operations of the device are complete (operations on a GPU are asynchronous), and
/// throws their errors. Returns at once for the CPU. Throws bad_input if the device does not exist.
void synchronize(device target);

/// The CUDA version that Troupe was built with, "13.0"; empty without CUDA.
std::string cuda_version();

}  // namespace troupe
