#pragma once
#include <cudnn.h>

#include <source_location>

namespace troupe::cuda {

/// cuDNN's functions. The library is loaded by the first convolution.
struct cudnn_functions {
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) get_error_string = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnCreateTensorDescriptor) tensor_create = nullptr;
  decltype(&cudnnDestroyTensorDescriptor) tensor_destroy = nullptr;
  decltype(&cudnnSetTensor4dDescriptor) tensor_set = nullptr;
  decltype(&cudnnCreateFilterDescriptor) filter_create = nullptr;
  decltype(&cudnnDestroyFilterDescriptor) filter_destroy = nullptr;
  decltype(&cudnnSetFilter4dDescriptor) filter_set = nullptr;
  decltype(&cudnnCreateConvolutionDescriptor) convolution_create = nullptr;
  decltype(&cudnnDestroyConvolutionDescriptor) convolution_destroy = nullptr;
  decltype(&cudnnSetConvolution2dDescriptor) convolution_set = nullptr;
  decltype(&cudnnSetConvolutionGroupCount) convolution_set_groups = nullptr;
  decltype(&cudnnSetConvolutionMathType) convolution_set_math = nullptr;
  decltype(&cudnnGetConvolutionForwardWorkspaceSize) forward_workspace = nullptr;
  decltype(&cudnnGetConvolutionBackwardDataWorkspaceSize) input_gradient_workspace = nullptr;
  decltype(&cudnnGetConvolutionBackwardFilterWorkspaceSize) weight_gradient_workspace = nullptr;
  decltype(&cudnnConvolutionForward) forward = nullptr;
  decltype(&cudnnConvolutionBackwardData) input_gradient = nullptr;
  decltype(&cudnnConvolutionBackwardFilter) weight_gradient = nullptr;
};

/// Throws bad_input, naming the file and what to do, if the library cannot be loaded. Thread-safe.
const cudnn_functions& cudnn();

/// Null if the library cannot be loaded; the result of the first call is kept.
const cudnn_functions* cudnn_if_available();

void check(cudnnStatus_t status, const std::source_location& location = std::source_location::current());

}  // namespace troupe::cuda
