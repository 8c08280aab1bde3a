#include "support/fake_cuda_libraries/fake_cudnn.hpp"

#include <cstring>

#include "support/cuda_emulation/runtime/stream_work.hpp"
#include "support/fake_cuda_libraries/offered.hpp"
#include "troupe/ops/cuda/cudnn/cudnn.hpp"
#include "troupe/ops/cuda/libraries/cudnn_version.hpp"
#include "troupe/ops/kernels/all.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe::testing {
namespace {

using pass = described_convolution::which;
constexpr std::size_t workspace_bytes = 4096;

/// The extents of a tensor or of a filter.
struct fake_extents {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t first = 0, second = 0;
  size_2d size{};

  shape all() const { return {first, second, size.h, size.w}; }
};

/// The handle; cuDNN has one for each GPU.
struct fake_handle {
  cudaStream_t stream = nullptr;
};

template <class Fake, class Opaque>
Fake& fake_of(Opaque* opaque) {
  return *reinterpret_cast<Fake*>(opaque);
}

cudnnStatus_t on_call(std::string_view function) {
  return static_cast<cudnnStatus_t>(the_fake_cudnn().on_call(function));
}

template <class Fake, class Opaque>
cudnnStatus_t create(std::string_view function, Opaque** made) {
  if (auto status = on_call(function)) return status;
  *made = reinterpret_cast<Opaque*>(new Fake);
  the_fake_cudnn().on_create();
  return CUDNN_STATUS_SUCCESS;
}

template <class Fake, class Opaque>
cudnnStatus_t destroy(Opaque* opaque) {
  delete reinterpret_cast<Fake*>(opaque);
  the_fake_cudnn().on_destroy();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_extents(std::string_view function, fake_extents& of, cudnnDataType_t type,
                          const fake_extents& extents) {
  if (auto status = on_call(function)) return status;
  of = extents;
  of.type = type;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_convolution(cudnnConvolutionDescriptor_t how, int padding_h, int padding_w, int stride_h,
                              int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                              cudnnDataType_t sums) {
  if (auto status = on_call("cudnnSetConvolution2dDescriptor")) return status;
  if (mode != CUDNN_CROSS_CORRELATION || sums != CUDNN_DATA_FLOAT) return CUDNN_STATUS_BAD_PARAM;
  fake_of<conv2d_options>(how) = {
      .stride{stride_h, stride_w}, .padding{padding_h, padding_w}, .dilation{dilation_h, dilation_w}};
  return CUDNN_STATUS_SUCCESS;
}

described_convolution described(pass which, const fake_extents& x, const fake_extents& weight,
                                const fake_extents& y, const conv2d_options& options) {
  auto type = x.type == CUDNN_DATA_BFLOAT16 ? dtype::bf16
              : x.type == CUDNN_DATA_HALF   ? dtype::f16
                                            : dtype::f32;
  return {{x.first, x.second, y.second, x.size, y.size, weight.size, options}, type, which};
}

cudnnStatus_t workspace(std::string_view function, const described_convolution& of, bool has_fixed_order,
                        std::size_t* size_bytes) {
  if (auto status = on_call(function)) return status;
  if (!has_fixed_order) return CUDNN_STATUS_BAD_PARAM;
  *size_bytes = workspace_bytes;
  const auto& answer = the_fake_cudnn().workspace_status;
  return answer ? answer(of) : CUDNN_STATUS_SUCCESS;
}

/// An argument of a pass: its elements and their layout.
struct placed_elements {
  const fake_extents& at;
  const void* elements;
};

template <class Descriptor>
placed_elements placed(Descriptor at, const void* elements) {
  return {fake_of<fake_extents>(at), elements};
}

tensor operand(const placed_elements& of, dtype type) {
  return tensor::wrap(nullptr, static_cast<std::byte*>(const_cast<void*>(of.elements)), of.at.all(), type);
}

/// A call of one of the three passes, whichever of x, weight and y is its result.
struct pass_call {
  std::string_view function;
  pass which;
  cudnnHandle_t handle;
  placed_elements x, weight, y;
  cudnnConvolutionDescriptor_t how;
  const void *alpha, *beta;
  void* memory;
  std::size_t size_bytes;
};

void compute(described_convolution of, tensor x, tensor weight, tensor y, gradient_mode mode) {
  const auto& kernels = cpu_kernels().conv2d;
  if (of.pass == pass::forward)
    kernels.forward(of.of, x, weight, {}, y);
  else if (of.pass == pass::input_gradient)
    kernels.backward_input(of.of, y, weight, x);
  else
    kernels.backward_weight(of.of, x, y, weight, mode);
}

cudnnStatus_t enqueue(const pass_call& call) {
  if (auto status = on_call(call.function)) return status;
  auto kept = *static_cast<const float*>(call.beta);
  auto is_right = *static_cast<const float*>(call.alpha) == 1 && call.memory &&
                  call.size_bytes >= workspace_bytes && (kept == 0 || call.which == pass::weight_gradient);
  if (!is_right) return CUDNN_STATUS_BAD_PARAM;
  auto mode = kept == 0 ? gradient_mode::assign : gradient_mode::accumulate;
  auto of = described(call.which, call.x.at, call.weight.at, call.y.at, fake_of<conv2d_options>(call.how));
  emulation::enqueue(fake_of<fake_handle>(call.handle).stream,
                     [of, x = operand(call.x, of.type), weight = operand(call.weight, of.type),
                      y = operand(call.y, of.type), memory = call.memory, mode] {
                       std::memset(memory, 0xff, workspace_bytes);
                       compute(of, x, weight, y, mode);
                     });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t forward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_of, const void* x,
                      cudnnFilterDescriptor_t weight_of, const void* weight, cudnnConvolutionDescriptor_t how,
                      cudnnConvolutionFwdAlgo_t, void* memory, std::size_t size_bytes, const void* beta,
                      cudnnTensorDescriptor_t y_of, void* y) {
  return enqueue({"cudnnConvolutionForward", pass::forward, handle, placed(x_of, x),
                  placed(weight_of, weight), placed(y_of, y), how, alpha, beta, memory, size_bytes});
}

cudnnStatus_t input_gradient(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t weight_of,
                             const void* weight, cudnnTensorDescriptor_t y_of, const void* y,
                             cudnnConvolutionDescriptor_t how, cudnnConvolutionBwdDataAlgo_t, void* memory,
                             std::size_t size_bytes, const void* beta, cudnnTensorDescriptor_t x_of,
                             void* x) {
  return enqueue({"cudnnConvolutionBackwardData", pass::input_gradient, handle, placed(x_of, x),
                  placed(weight_of, weight), placed(y_of, y), how, alpha, beta, memory, size_bytes});
}

cudnnStatus_t weight_gradient(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_of,
                              const void* x, cudnnTensorDescriptor_t y_of, const void* y,
                              cudnnConvolutionDescriptor_t how, cudnnConvolutionBwdFilterAlgo_t, void* memory,
                              std::size_t size_bytes, const void* beta, cudnnFilterDescriptor_t weight_of,
                              void* weight) {
  return enqueue({"cudnnConvolutionBackwardFilter", pass::weight_gradient, handle, placed(x_of, x),
                  placed(weight_of, weight), placed(y_of, y), how, alpha, beta, memory, size_bytes});
}

void add_descriptors(cuda::cudnn_functions& all) {
  all.tensor_create = [](cudnnTensorDescriptor_t* made) {
    return create<fake_extents>("cudnnCreateTensorDescriptor", made);
  };
  all.tensor_destroy = destroy<fake_extents>;
  all.tensor_set = [](cudnnTensorDescriptor_t of, cudnnTensorFormat_t, cudnnDataType_t type, int n, int c,
                      int h, int w) {
    return set_extents("cudnnSetTensor4dDescriptor", fake_of<fake_extents>(of), type, {type, n, c, {h, w}});
  };
  all.filter_create = [](cudnnFilterDescriptor_t* made) {
    return create<fake_extents>("cudnnCreateFilterDescriptor", made);
  };
  all.filter_destroy = destroy<fake_extents>;
  all.filter_set = [](cudnnFilterDescriptor_t of, cudnnDataType_t type, cudnnTensorFormat_t, int k, int c,
                      int h, int w) {
    return set_extents("cudnnSetFilter4dDescriptor", fake_of<fake_extents>(of), type, {type, k, c, {h, w}});
  };
  all.convolution_create = [](cudnnConvolutionDescriptor_t* made) {
    return create<conv2d_options>("cudnnCreateConvolutionDescriptor", made);
  };
  all.convolution_destroy = destroy<conv2d_options>;
  all.convolution_set = set_convolution;
  all.convolution_set_groups = [](cudnnConvolutionDescriptor_t of, int groups) {
    fake_of<conv2d_options>(of).groups = groups;
    return on_call("cudnnSetConvolutionGroupCount");
  };
  all.convolution_set_math = [](cudnnConvolutionDescriptor_t, cudnnMathType_t) {
    return on_call("cudnnSetConvolutionMathType");
  };
}

void add_workspaces(cuda::cudnn_functions& all) {
  all.forward_workspace = [](cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t weight,
                             cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y,
                             cudnnConvolutionFwdAlgo_t algorithm, std::size_t* size_bytes) {
    return workspace("cudnnGetConvolutionForwardWorkspaceSize",
                     described(pass::forward, fake_of<fake_extents>(x), fake_of<fake_extents>(weight),
                               fake_of<fake_extents>(y), fake_of<conv2d_options>(how)),
                     algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, size_bytes);
  };
  all.input_gradient_workspace = [](cudnnHandle_t, cudnnFilterDescriptor_t weight, cudnnTensorDescriptor_t y,
                                    cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t x,
                                    cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* size_bytes) {
    return workspace("cudnnGetConvolutionBackwardDataWorkspaceSize",
                     described(pass::input_gradient, fake_of<fake_extents>(x), fake_of<fake_extents>(weight),
                               fake_of<fake_extents>(y), fake_of<conv2d_options>(how)),
                     algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, size_bytes);
  };
  all.weight_gradient_workspace = [](cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y,
                                     cudnnConvolutionDescriptor_t how, cudnnFilterDescriptor_t weight,
                                     cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* size_bytes) {
    return workspace("cudnnGetConvolutionBackwardFilterWorkspaceSize",
                     described(pass::weight_gradient, fake_of<fake_extents>(x), fake_of<fake_extents>(weight),
                               fake_of<fake_extents>(y), fake_of<conv2d_options>(how)),
                     algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, size_bytes);
  };
}

cuda::cudnn_functions functions() {
  cuda::cudnn_functions all;
  all.get_version = [] { return std::size_t{CUDNN_VERSION}; };
  all.get_error_string = [](cudnnStatus_t status) {
    return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                                       : "CUDNN_STATUS_OTHER";
  };
  all.create = [](cudnnHandle_t* made) {
    if (auto status = on_call("cudnnCreate")) return status;
    *made = reinterpret_cast<cudnnHandle_t>(new fake_handle);
    return CUDNN_STATUS_SUCCESS;
  };
  all.set_stream = [](cudnnHandle_t handle, cudaStream_t stream) {
    if (auto status = on_call("cudnnSetStream")) return status;
    fake_of<fake_handle>(handle).stream = stream;
    return CUDNN_STATUS_SUCCESS;
  };
  add_descriptors(all);
  add_workspaces(all);
  all.forward = forward;
  all.input_gradient = input_gradient;
  all.weight_gradient = weight_gradient;
  return all;
}

}  // namespace

fake_cudnn& the_fake_cudnn() {
  static auto* one = [] {
    auto* made = new fake_cudnn;
    if (!libraries_are_offered())
      made->workspace_status = [](const auto&) { return CUDNN_STATUS_NOT_SUPPORTED; };
    return made;
  }();
  return *one;
}

}  // namespace troupe::testing

namespace troupe::cuda {

const cudnn_functions& cudnn() {
  static const auto all = testing::functions();
  return all;
}

const cudnn_functions* cudnn_if_available() {
  return testing::the_fake_cudnn().is_there ? &cudnn() : nullptr;
}

void check(cudnnStatus_t status, const std::source_location& where) {
  if (status != CUDNN_STATUS_SUCCESS) throw cuda_error("cuDNN", cudnn().get_error_string(status), where);
}

std::string cudnn_version() { return testing::the_fake_cudnn().is_there ? "fake" : ""; }

}  // namespace troupe::cuda
