#include "troupe/ops/cuda/cudnn/cudnn.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/cudnn_version.hpp"
#include "troupe/ops/cuda/shared_library.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe::cuda {
namespace {

const std::string file_name = "libcudnn.so." + std::to_string(CUDNN_MAJOR);

[[noreturn]] void refuse(const char* problem) {
  throw bad_input("convolutions on GPUs need cuDNN, which cannot be loaded: " +
                  std::string(problem ? problem : file_name) +
                  "; install it, and let its folder be known to ldconfig or stand in LD_LIBRARY_PATH");
}

void* load() { return load_library(file_name, TROUPE_CUDA_LIBRARY_DIR); }

template <class Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) refuse(dlerror());
}

cudnn_functions find_all() {
  cudnn_functions all;
  auto* library = load();
  if (!library) refuse(dlerror());
  find(library, all.get_version, "cudnnGetVersion");
  find(library, all.get_error_string, "cudnnGetErrorString");
  find(library, all.create, "cudnnCreate");
  find(library, all.set_stream, "cudnnSetStream");
  find(library, all.tensor_create, "cudnnCreateTensorDescriptor");
  find(library, all.tensor_destroy, "cudnnDestroyTensorDescriptor");
  find(library, all.tensor_set, "cudnnSetTensor4dDescriptor");
  find(library, all.filter_create, "cudnnCreateFilterDescriptor");
  find(library, all.filter_destroy, "cudnnDestroyFilterDescriptor");
  find(library, all.filter_set, "cudnnSetFilter4dDescriptor");
  find(library, all.convolution_create, "cudnnCreateConvolutionDescriptor");
  find(library, all.convolution_destroy, "cudnnDestroyConvolutionDescriptor");
  find(library, all.convolution_set, "cudnnSetConvolution2dDescriptor");
  find(library, all.convolution_set_groups, "cudnnSetConvolutionGroupCount");
  find(library, all.convolution_set_math, "cudnnSetConvolutionMathType");
  find(library, all.forward_workspace, "cudnnGetConvolutionForwardWorkspaceSize");
  find(library, all.input_gradient_workspace, "cudnnGetConvolutionBackwardDataWorkspaceSize");
  find(library, all.weight_gradient_workspace, "cudnnGetConvolutionBackwardFilterWorkspaceSize");
  find(library, all.forward, "cudnnConvolutionForward");
  find(library, all.input_gradient, "cudnnConvolutionBackwardData");
  find(library, all.weight_gradient, "cudnnConvolutionBackwardFilter");
  return all;
}

}  // namespace

const cudnn_functions& cudnn() {
  static const auto all = find_all();
  return all;
}

void check(cudnnStatus_t status, const std::source_location& where) {
  if (status != CUDNN_STATUS_SUCCESS) throw cuda_error("cuDNN", cudnn().get_error_string(status), where);
}

std::string cudnn_version() {
  if (!load()) return "";
  auto version = cudnn().get_version();
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace troupe::cuda
