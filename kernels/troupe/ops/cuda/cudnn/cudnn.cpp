#include "troupe/ops/cuda/cudnn/cudnn.hpp"

#include "troupe/ops/cuda/libraries/cudnn_version.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/dynamic_library.hpp"

namespace troupe::cuda {
namespace {

library_location place() {
  return {.file_name = "libcudnn.so." + std::to_string(CUDNN_MAJOR),
          .folder = TROUPE_CUDA_LIBRARY_DIR,
          .need = "convolutions on GPUs need cuDNN"};
}

cudnn_functions find_all() {
  cudnn_functions all;
  dynamic_library library(place());
  library.find(all.get_version, "cudnnGetVersion");
  library.find(all.get_error_string, "cudnnGetErrorString");
  library.find(all.create, "cudnnCreate");
  library.find(all.set_stream, "cudnnSetStream");
  library.find(all.tensor_create, "cudnnCreateTensorDescriptor");
  library.find(all.tensor_destroy, "cudnnDestroyTensorDescriptor");
  library.find(all.tensor_set, "cudnnSetTensor4dDescriptor");
  library.find(all.filter_create, "cudnnCreateFilterDescriptor");
  library.find(all.filter_destroy, "cudnnDestroyFilterDescriptor");
  library.find(all.filter_set, "cudnnSetFilter4dDescriptor");
  library.find(all.convolution_create, "cudnnCreateConvolutionDescriptor");
  library.find(all.convolution_destroy, "cudnnDestroyConvolutionDescriptor");
  library.find(all.convolution_set, "cudnnSetConvolution2dDescriptor");
  library.find(all.convolution_set_groups, "cudnnSetConvolutionGroupCount");
  library.find(all.convolution_set_math, "cudnnSetConvolutionMathType");
  library.find(all.forward_workspace, "cudnnGetConvolutionForwardWorkspaceSize");
  library.find(all.input_gradient_workspace, "cudnnGetConvolutionBackwardDataWorkspaceSize");
  library.find(all.weight_gradient_workspace, "cudnnGetConvolutionBackwardFilterWorkspaceSize");
  library.find(all.forward, "cudnnConvolutionForward");
  library.find(all.input_gradient, "cudnnConvolutionBackwardData");
  library.find(all.weight_gradient, "cudnnConvolutionBackwardFilter");
  return all;
}

}  // namespace

const cudnn_functions& cudnn() {
  static const auto all = find_all();
  return all;
}

const cudnn_functions* cudnn_if_available() {
  static const bool is_there = dynamic_library::can_load(place());
  return is_there ? &cudnn() : nullptr;
}

void check(cudnnStatus_t status, const std::source_location& location) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  check_not_lost(location);
  throw cuda_error("cuDNN", cudnn().get_error_string(status), location);
}

std::string cudnn_version() {
  const auto* functions = cudnn_if_available();
  if (!functions) return "";
  auto version = functions->get_version();
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace troupe::cuda
