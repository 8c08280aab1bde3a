#include "troupe/ops/cuda/cudnn/convolution_plan.hpp"

#include <algorithm>
#include <climits>

namespace troupe::cuda {
namespace {

// Deterministic algorithms: they sum in a fixed order, which not all of cuDNN's algorithms do.
constexpr auto forward_algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr auto input_gradient_algorithm = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr auto weight_gradient_algorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

cudnnDataType_t data_type(dtype type) {
  if (type == dtype::bf16) return CUDNN_DATA_BFLOAT16;
  return type == dtype::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

cudnnMathType_t math_of(const convolution_key& key) {
  if (key.type != dtype::f32) return CUDNN_TENSOR_OP_MATH;
  return key.are_short ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

/// Whether cuDNN supports the problem. Throws for all other failures, including those of the installation,
/// which another process of the same numeric class might not have.
bool is_supported(cudnnStatus_t status,
                  const std::source_location& location = std::source_location::current()) {
  if (status == CUDNN_STATUS_SUCCESS) return true;
  auto is_of_installation = status == CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER ||
                            status == CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART ||
                            status == CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING ||
                            status == CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE;
  if (CUDNN_STATUS_CATEGORY(status) != CUDNN_STATUS_NOT_SUPPORTED || is_of_installation)
    check(status, location);
  return false;
}

shape x_extents(const conv2d_problem& problem) {
  return {problem.batch, problem.in_channels, problem.in.h, problem.in.w};
}
shape y_extents(const conv2d_problem& problem) {
  return {problem.batch, problem.out_channels, problem.out.h, problem.out.w};
}
shape weight_extents(const conv2d_problem& problem) {
  return {problem.out_channels, problem.in_channels / problem.options.groups, problem.kernel.h,
          problem.kernel.w};
}

/// cuDNN uses 32-bit indices, also for the elements of a tensor.
bool fits(const conv2d_problem& problem) {
  const auto& [stride, padding, dilation, groups, relu] = problem.options;
  auto largest = std::max({x_extents(problem).num_elements(), weight_extents(problem).num_elements(),
                           y_extents(problem).num_elements(), stride.h, stride.w, padding.h, padding.w,
                           dilation.h, dilation.w});
  return largest <= INT_MAX;
}

int number(std::int64_t value) { return static_cast<int>(value); }

std::unique_ptr<cudnnTensorStruct, cudnn_delete> new_tensor() {
  cudnnTensorDescriptor_t made = nullptr;
  check(cudnn().tensor_create(&made));
  return std::unique_ptr<cudnnTensorStruct, cudnn_delete>(made);
}

/// Returns false if cuDNN does not support it.
bool describe_images(cudnnTensorDescriptor_t images, dtype type, const shape& extents) {
  return is_supported(cudnn().tensor_set(images, CUDNN_TENSOR_NCHW, data_type(type), number(extents[0]),
                                         number(extents[1]), number(extents[2]), number(extents[3])));
}

std::string by(size_2d size) { return std::to_string(size.h) + " x " + std::to_string(size.w); }

std::string_view name_of(convolution_pass pass) {
  if (pass == convolution_pass::forward) return "conv2d";
  return pass == convolution_pass::input_gradient ? "conv2d_backward_input" : "conv2d_backward_weight";
}

}  // namespace

std::string to_string(const convolution_key& key) {
  const auto& problem = key.problem;
  const auto& [stride, padding, dilation, groups, relu] = problem.options;
  return std::string(name_of(key.pass)) + " of " + std::string(to_string(key.type)) + " x " +
         to_string(x_extents(problem)) + " and weight " + to_string(weight_extents(problem)) + ", stride " +
         by(stride) + ", padding " + by(padding) + ", dilation " + by(dilation) + ", groups " +
         std::to_string(groups);
}

void cudnn_delete::operator()(cudnnTensorStruct* handle) const { cudnn().tensor_destroy(handle); }
void cudnn_delete::operator()(cudnnFilterStruct* handle) const { cudnn().filter_destroy(handle); }
void cudnn_delete::operator()(cudnnConvolutionStruct* handle) const { cudnn().convolution_destroy(handle); }

std::optional<convolution_plan> convolution_plan::make(cudnnHandle_t handle, const convolution_key& key) {
  if (!fits(key.problem)) return std::nullopt;
  convolution_plan made(key);
  if (!made.describe(key) || !made.find_workspace(handle)) return std::nullopt;
  return made;
}

bool convolution_plan::describe(const convolution_key& key) {
  const auto& problem = key.problem;
  const auto& [stride, padding, dilation, groups, relu] = problem.options;
  x_ = new_tensor();
  y_ = new_tensor();
  cudnnFilterDescriptor_t filter = nullptr;
  check(cudnn().filter_create(&filter));
  weight_.reset(filter);
  cudnnConvolutionDescriptor_t descriptor = nullptr;
  check(cudnn().convolution_create(&descriptor));
  convolution_.reset(descriptor);
  return describe_images(x_.get(), key.type, x_extents(problem)) &&
         describe_images(y_.get(), key.type, y_extents(problem)) &&
         is_supported(cudnn().filter_set(filter, data_type(key.type), CUDNN_TENSOR_NCHW,
                                         number(problem.out_channels), number(problem.in_channels / groups),
                                         number(problem.kernel.h), number(problem.kernel.w))) &&
         is_supported(cudnn().convolution_set(
             descriptor, number(padding.h), number(padding.w), number(stride.h), number(stride.w),
             number(dilation.h), number(dilation.w), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)) &&
         is_supported(cudnn().convolution_set_groups(descriptor, number(groups))) &&
         is_supported(cudnn().convolution_set_math(descriptor, math_of(key)));
}

bool convolution_plan::find_workspace(cudnnHandle_t handle) {
  switch (pass_) {
    case convolution_pass::forward:
      return is_supported(cudnn().forward_workspace(handle, x_.get(), weight_.get(), convolution_.get(),
                                                    y_.get(), forward_algorithm, &workspace_bytes_));
    case convolution_pass::input_gradient:
      return is_supported(cudnn().input_gradient_workspace(handle, weight_.get(), y_.get(),
                                                           convolution_.get(), x_.get(),
                                                           input_gradient_algorithm, &workspace_bytes_));
    default:
      return is_supported(cudnn().weight_gradient_workspace(handle, x_.get(), y_.get(), convolution_.get(),
                                                            weight_.get(), weight_gradient_algorithm,
                                                            &workspace_bytes_));
  }
}

bool convolution_plan::run(cudnnHandle_t handle, void* x, void* weight, void* y, void* workspace) const {
  const float one = 1;
  switch (pass_) {
    case convolution_pass::forward:
      return is_supported(cudnn().forward(handle, &one, x_.get(), x, weight_.get(), weight,
                                          convolution_.get(), forward_algorithm, workspace, workspace_bytes_,
                                          &kept_, y_.get(), y));
    case convolution_pass::input_gradient:
      return is_supported(cudnn().input_gradient(handle, &one, weight_.get(), weight, y_.get(), y,
                                                 convolution_.get(), input_gradient_algorithm, workspace,
                                                 workspace_bytes_, &kept_, x_.get(), x));
    default:
      return is_supported(cudnn().weight_gradient(handle, &one, x_.get(), x, y_.get(), y, convolution_.get(),
                                                  weight_gradient_algorithm, workspace, workspace_bytes_,
                                                  &kept_, weight_.get(), weight));
  }
}

}  // namespace troupe::cuda
