#pragma once
#include <memory>
#include <optional>
#include <string>

#include "troupe/ops/cuda/convolution/convolution_passes.hpp"
#include "troupe/ops/cuda/cudnn/cudnn.hpp"

namespace troupe::cuda {

/// All parameters that decide how cuDNN computes a convolution.
struct convolution_key {
  convolution_pass pass = convolution_pass::forward;
  dtype type = dtype::f32;  ///< dtype of x, weight and y
  /// Whether f32 operands may be rounded to TF32 without loss, since they were converted from bf16 or f16.
  bool are_short = false;
  bool accumulate = false;
  std::uint32_t alignment_bytes = 0;  ///< of all three tensors, a power of two up to 256
  conv2d_problem problem;             ///< its relu is always false
  bool operator==(const convolution_key&) const = default;
};

/// For messages: the pass, dtype, extents and options.
std::string to_string(const convolution_key& key);

/// Calls one of cuDNN's destroy functions.
struct cudnn_delete {
  void operator()(cudnnTensorStruct* handle) const;
  void operator()(cudnnFilterStruct* handle) const;
  void operator()(cudnnConvolutionStruct* handle) const;
};

/// cuDNN's descriptors for one pass, with a deterministic algorithm. Not thread-safe.
class convolution_plan {
 public:
  /// Empty if cuDNN does not support the key. Throws cuda_error if it fails.
  static std::optional<convolution_plan> make(cudnnHandle_t handle, const convolution_key& key);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Queues the pass: of x, weight and y, or their gradients, one is written to. Returns false, with nothing
  /// queued, if cuDNN does not support it after all.
  bool run(cudnnHandle_t handle, void* x, void* weight, void* y, void* workspace) const;

 private:
  explicit convolution_plan(const convolution_key& key)
      : pass_(key.pass), kept_(key.accumulate ? 1.0F : 0.0F) {}
  /// Return false for what cuDNN does not support.
  bool describe(const convolution_key& key);
  bool find_workspace(cudnnHandle_t handle);

  convolution_pass pass_;
  float kept_;  ///< beta: factor of the previous content of the result
  std::unique_ptr<cudnnTensorStruct, cudnn_delete> x_, y_;
  std::unique_ptr<cudnnFilterStruct, cudnn_delete> weight_;
  std::unique_ptr<cudnnConvolutionStruct, cudnn_delete> convolution_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace troupe::cuda
