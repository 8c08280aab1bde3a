#pragma once
#include <memory>

#include "troupe/ops/cuda/cudnn/cudnn.hpp"
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::cuda {

enum class convolution_pass : std::uint8_t { forward, input_gradient, weight_gradient };

/// What decides how cuDNN computes a convolution.
struct convolution_key {
  convolution_pass pass = convolution_pass::forward;
  dtype type = dtype::f32;  ///< of all three tensors
  /// Whether f32 factors may be cut to TF32's 11 bits, as those that come from bf16 or f16 have no more.
  bool are_short = false;
  conv2d_problem of;
  bool operator==(const convolution_key&) const = default;
};

/// Calls one of cuDNN's destroy functions.
struct cudnn_delete {
  void operator()(cudnnTensorStruct* of) const;
  void operator()(cudnnFilterStruct* of) const;
  void operator()(cudnnConvolutionStruct* of) const;
};

/// cuDNN's descriptions for one pass, with the algorithm of its kind that gives the same bits every time. Not
/// thread-safe.
class convolution_plan {
 public:
  /// Throws cuda_error for what cuDNN cannot compute.
  convolution_plan(cudnnHandle_t handle, const convolution_key& key);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Queues the pass: of x, weight and y, or their gradients, one is written to: = , or with `accumulate` +=.
  void run(cudnnHandle_t handle, void* x, void* weight, void* y, void* workspace, bool accumulate) const;

 private:
  void describe(const convolution_key& key);
  void find_workspace(cudnnHandle_t handle);

  convolution_pass pass_;
  std::unique_ptr<cudnnTensorStruct, cudnn_delete> x_, y_;
  std::unique_ptr<cudnnFilterStruct, cudnn_delete> weight_;
  std::unique_ptr<cudnnConvolutionStruct, cudnn_delete> how_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace troupe::cuda
