#pragma once
#include <cudnn.h>

#include <functional>

#include "support/fake_cuda_libraries/fake_library.hpp"
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::testing {

/// A pass of a convolution as described by the descriptors passed to the fake cuDNN.
struct described_convolution {
  conv2d_problem of;
  dtype type = dtype::f32;
  enum class which { forward, input_gradient, weight_gradient } pass = which::forward;
};

/// Replaces cuDNN: the CPU's kernels compute passes, in stream order, and also overwrite the workspace. For a
/// workspace that is too small, or an algorithm whose sums have no fixed order, calls return
/// CUDNN_STATUS_BAD_PARAM.
struct fake_cudnn : fake_library {
  /// Whether the library can be loaded.
  bool is_there = true;
  /// The result of the query of a pass's workspace; success by default.
  std::function<cudnnStatus_t(const described_convolution&)> workspace_status;
};

/// The instance of this process. A program that links fake_cudnn.cpp has no other cuDNN. If the environment
/// variable TROUPE_EMULATED_LIBRARIES is "none", no pass is supported by default.
fake_cudnn& the_fake_cudnn();

}  // namespace troupe::testing
