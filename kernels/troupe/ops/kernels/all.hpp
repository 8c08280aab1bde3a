#pragma once
#include "troupe/ops/kernels/activation.hpp"
#include "troupe/ops/kernels/conv2d.hpp"
#include "troupe/ops/kernels/convert.hpp"
#include "troupe/ops/kernels/cross_entropy.hpp"
#include "troupe/ops/kernels/elementwise.hpp"
#include "troupe/ops/kernels/linear.hpp"
#include "troupe/ops/kernels/norm.hpp"
#include "troupe/ops/kernels/pooling.hpp"
#include "troupe/ops/kernels/rearrange.hpp"
#include "troupe/ops/kernels/reduction.hpp"
#include "troupe/ops/kernels/softmax.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

/// What operations need from a device: one table for each operation family, under the family's name. A null
/// entry is an operation that this kind of device does not have.
struct device_kernels {
  activation_kernels activation;
  conv2d_kernels conv2d;
  pooling_kernels pooling;
  norm_kernels norm;
  softmax_kernels softmax;
  cross_entropy_kernels cross_entropy;
  elementwise_kernels elementwise;
  reduction_kernels reduction;
  convert_kernels convert;
  rearrange_kernels rearrange;
  linear_kernels linear;
};

/// The tables of the device's kind. Throws bad_input for a GPU if Troupe was built without CUDA.
const device_kernels& kernels_on(device where);

// The build picks ops/cuda/ or ops/cuda_absent/ for the second.
const device_kernels& cpu_kernels();
const device_kernels& cuda_kernels(device where);

}  // namespace troupe
