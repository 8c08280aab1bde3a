#include "troupe/ops/cuda/cudnn/convolution_plan.hpp"

#include <climits>

#include "troupe/error/errors.hpp"

namespace troupe::cuda {
namespace {

// Each adds up in a fixed order, which not all of cuDNN's algorithms do.
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

int number(std::int64_t value) {
  if (value > INT_MAX) throw_invalid("conv2d", "extents below 2^31 on a GPU", std::to_string(value));
  return static_cast<int>(value);
}

std::unique_ptr<cudnnTensorStruct, cudnn_delete> images(dtype type, std::int64_t batch, std::int64_t channels,
                                                        size_2d extents) {
  cudnnTensorDescriptor_t made = nullptr;
  check(cudnn().tensor_create(&made));
  std::unique_ptr<cudnnTensorStruct, cudnn_delete> result(made);
  check(cudnn().tensor_set(made, CUDNN_TENSOR_NCHW, data_type(type), number(batch), number(channels),
                           number(extents.h), number(extents.w)));
  return result;
}

}  // namespace

void cudnn_delete::operator()(cudnnTensorStruct* of) const { cudnn().tensor_destroy(of); }
void cudnn_delete::operator()(cudnnFilterStruct* of) const { cudnn().filter_destroy(of); }
void cudnn_delete::operator()(cudnnConvolutionStruct* of) const { cudnn().convolution_destroy(of); }

convolution_plan::convolution_plan(cudnnHandle_t handle, const convolution_key& key) : pass_(key.pass) {
  describe(key);
  find_workspace(handle);
}

void convolution_plan::describe(const convolution_key& key) {
  const auto& of = key.of;
  const auto& [stride, padding, dilation, groups, relu] = of.options;
  x_ = images(key.type, of.batch, of.in_channels, of.in);
  y_ = images(key.type, of.batch, of.out_channels, of.out);
  cudnnFilterDescriptor_t filter = nullptr;
  check(cudnn().filter_create(&filter));
  weight_.reset(filter);
  check(cudnn().filter_set(filter, data_type(key.type), CUDNN_TENSOR_NCHW, number(of.out_channels),
                           number(of.in_channels / groups), number(of.kernel.h), number(of.kernel.w)));
  cudnnConvolutionDescriptor_t how = nullptr;
  check(cudnn().convolution_create(&how));
  how_.reset(how);
  check(cudnn().convolution_set(how, number(padding.h), number(padding.w), number(stride.h), number(stride.w),
                                number(dilation.h), number(dilation.w), CUDNN_CROSS_CORRELATION,
                                CUDNN_DATA_FLOAT));
  check(cudnn().convolution_set_groups(how, number(groups)));
  check(cudnn().convolution_set_math(how, math_of(key)));
}

void convolution_plan::find_workspace(cudnnHandle_t handle) {
  if (pass_ == convolution_pass::forward)
    check(cudnn().forward_workspace(handle, x_.get(), weight_.get(), how_.get(), y_.get(), forward_algorithm,
                                    &workspace_bytes_));
  else if (pass_ == convolution_pass::input_gradient)
    check(cudnn().input_gradient_workspace(handle, weight_.get(), y_.get(), how_.get(), x_.get(),
                                           input_gradient_algorithm, &workspace_bytes_));
  else
    check(cudnn().weight_gradient_workspace(handle, x_.get(), y_.get(), how_.get(), weight_.get(),
                                            weight_gradient_algorithm, &workspace_bytes_));
}

void convolution_plan::run(cudnnHandle_t handle, void* x, void* weight, void* y, void* workspace,
                           bool accumulate) const {
  const float one = 1, kept = accumulate ? 1 : 0;
  if (pass_ == convolution_pass::forward)
    check(cudnn().forward(handle, &one, x_.get(), x, weight_.get(), weight, how_.get(), forward_algorithm,
                          workspace, workspace_bytes_, &kept, y_.get(), y));
  else if (pass_ == convolution_pass::input_gradient)
    check(cudnn().input_gradient(handle, &one, weight_.get(), weight, y_.get(), y, how_.get(),
                                 input_gradient_algorithm, workspace, workspace_bytes_, &kept, x_.get(), x));
  else
    check(cudnn().weight_gradient(handle, &one, x_.get(), x, y_.get(), y, how_.get(),
                                  weight_gradient_algorithm, workspace, workspace_bytes_, &kept,
                                  weight_.get(), weight));
}

}  // namespace troupe::cuda
