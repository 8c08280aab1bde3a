#pragma once
#include "troupe/ops/kernels/activation.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

/// What operations need from a device: one table for each operation family, under the family's name.
struct device_kernels {
  activation_kernels activation;
};

/// The tables of the device's kind. Throws bad_input for a GPU if Troupe was built without CUDA.
const device_kernels& kernels_on(device where);

// The build picks ops/cuda/ or ops/cuda_absent/ for the second.
const device_kernels& cpu_kernels();
const device_kernels& cuda_kernels(device where);

}  // namespace troupe
