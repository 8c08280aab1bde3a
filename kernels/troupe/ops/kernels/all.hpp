#pragma once
#include "troupe/ops/kernels/attention.hpp"
#include "troupe/ops/kernels/batch_norm.hpp"
#include "troupe/ops/kernels/conv2d.hpp"
#include "troupe/ops/kernels/elementwise.hpp"
#include "troupe/ops/kernels/losses.hpp"
#include "troupe/ops/kernels/optimizer_steps.hpp"
#include "troupe/ops/kernels/pooling.hpp"
#include "troupe/ops/kernels/products.hpp"
#include "troupe/ops/kernels/rearrange.hpp"
#include "troupe/ops/kernels/reduction.hpp"
#include "troupe/ops/kernels/rows.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe {

/// The kernels of one kind of device: one table for each operation family.
struct device_kernels {
  activation_kernels activation;
  adam_step_kernels adam_step;
  attention_kernels attention;
  batch_norm_kernels batch_norm;
  conv2d_kernels conv2d;
  convert_kernels convert;
  cross_entropy_kernels cross_entropy;
  dropout_kernels dropout;
  elementwise_kernels elementwise;
  lamb_step_kernels lamb_step;
  mse_loss_kernels mse_loss;
  norm_kernels norm;
  pooling_kernels pooling;
  product_kernels products;
  rearrange_kernels rearrange;
  reduction_kernels reduction;
  row_kernels rows;
  sgd_step_kernels sgd_step;
  softmax_kernels softmax;
  top_k_kernels top_k;
};

/// The kernel tables for a device. Throws bad_input for a GPU if Troupe was built without CUDA.
const device_kernels& kernels_on(device target);

// cuda_kernels is implemented in ops/cuda/ or ops/cuda_absent/, as configured.
const device_kernels& cpu_kernels();
const device_kernels& cuda_kernels(device target);

}  // namespace troupe
