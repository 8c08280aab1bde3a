#pragma once
#include <cudnn.h>

#include <functional>

#include "support/fake_cuda_libraries/fake_library.hpp"
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::testing {

/// A pass of a convolution as the descriptors tell the fake cuDNN.
struct described_convolution {
  conv2d_problem of;
  dtype type = dtype::f32;
  enum class which { forward, input_gradient, weight_gradient } pass = which::forward;
};

/// In place of cuDNN: passes are computed by the CPU's kernels, in the order of the stream, in which they
/// also overwrite their workspace. A workspace that is too small, or an algorithm whose sums have no fixed
/// order, is answered CUDNN_STATUS_BAD_PARAM.
struct fake_cudnn : fake_library {
  /// Whether the library can be loaded.
  bool is_there = true;
  /// What the query of a pass's workspace answers; success unless set.
  std::function<cudnnStatus_t(const described_convolution&)> workspace_status;
};

/// The process's one. A program that links fake_cudnn.cpp has no other cuDNN. Where the environment variable
/// TROUPE_EMULATED_LIBRARIES is "none" no pass is supported unless told otherwise.
fake_cudnn& the_fake_cudnn();

}  // namespace troupe::testing
