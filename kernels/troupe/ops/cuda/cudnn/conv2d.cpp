#include <deque>
#include <list>
#include <mutex>

#include "troupe/ops/cuda/bias.hpp"
#include "troupe/ops/cuda/cudnn/convolution_plan.hpp"
#include "troupe/ops/cuda/families.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::cuda {
namespace {

/// One GPU's plans, made at the first convolution of their kind.
class convolution_plans {
 public:
  void run(const convolution_key& key, tensor x, tensor weight, tensor y, gradient_mode mode) {
    auto& owner = gpu_at(x.where().index);
    gpu_scope scope(owner.index());
    std::lock_guard lock(mutex_);
    if (!handle_) check(cudnn().create(&handle_));
    check(cudnn().set_stream(handle_, owner.stream()));
    const auto& plan = plan_for(key);
    auto bytes = static_cast<std::int64_t>(plan.workspace_bytes());
    auto workspace = bytes > 0 ? tensor::empty({bytes}, dtype::u8, x.where()) : tensor();
    plan.run(handle_, x.bytes().data(), weight.bytes().data(), y.bytes().data(), workspace.bytes().data(),
             mode == gradient_mode::accumulate);
  }

 private:
  /// A model has few; shapes that change all the time must not fill the memory.
  static constexpr std::size_t most_plans = 256;

  struct known_plan {
    convolution_key key;
    convolution_plan plan;
  };

  const convolution_plan& plan_for(const convolution_key& key) {
    for (const auto& each : plans_)
      if (each.key == key) return each.plan;
    if (plans_.size() >= most_plans) plans_.clear();
    plans_.push_back({key, convolution_plan(handle_, key)});
    return plans_.back().plan;
  }

  std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;
  std::list<known_plan> plans_;
};

convolution_plans& plans_of(device where) {
  // Never destroyed: the driver may be gone before static objects are.
  static auto* all = new std::deque<convolution_plans>(static_cast<std::size_t>(num_cuda_devices()));
  return all->at(static_cast<std::size_t>(where.index));
}

/// What comes out of a convolution, as what goes over its pixels sees it.
batch_norm_problem pixels_of(const conv2d_problem& of) {
  return {of.batch, of.out_channels, of.out.h * of.out.w};
}

/// relu and the bias are not the plan's.
convolution_key key_of(convolution_pass pass, dtype type, conv2d_problem of) {
  of.options.relu = false;
  return {pass, type, false, of};
}

tensor as_f32(const tensor& x, const device_kernels& kernels) {
  if (x.type() == dtype::f32) return x;
  auto converted = tensor::empty(x.extents(), dtype::f32, x.where());
  kernels.convert.cast(x, converted);
  return converted;
}

void forward(const conv2d_problem& of, const tensor& x, const tensor& weight, const tensor& bias, tensor& y) {
  plans_of(x.where()).run(key_of(convolution_pass::forward, x.type(), of), x, weight, y,
                          gradient_mode::assign);
  add_channel_bias(pixels_of(of), bias, of.options.relu, y);
}

void backward_input(const conv2d_problem& of, const tensor& dy, const tensor& weight, tensor& dx) {
  plans_of(dy.where())
      .run(key_of(convolution_pass::input_gradient, dy.type(), of), dx, weight, dy, gradient_mode::assign);
}

/// In f32, as what it is added to is: of bf16 and f16 the products of their f32 copies' leading bits are
/// exact.
void backward_weight(const conv2d_problem& of, const tensor& x, const tensor& dy, tensor& dweight,
                     tensor& dbias, gradient_mode mode) {
  const auto& kernels = kernels_on(x.where());
  auto key = key_of(convolution_pass::weight_gradient, dtype::f32, of);
  key.are_short = x.type() != dtype::f32;
  auto is_direct = dweight.type() == dtype::f32;
  auto found = is_direct ? dweight : tensor::empty(dweight.extents(), dtype::f32, x.where());
  plans_of(x.where()).run(key, as_f32(x, kernels), found, as_f32(dy, kernels),
                          is_direct ? mode : gradient_mode::assign);
  if (!is_direct && mode == gradient_mode::accumulate) kernels.elementwise.axpy(1, found, dweight);
  if (!is_direct && mode == gradient_mode::assign) kernels.convert.cast(found, dweight);
  if (dbias.defined()) sum_channels(pixels_of(of), dy, dbias, mode);
}

}  // namespace

conv2d_kernels conv2d() {
  return {.forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
}

}  // namespace troupe::cuda
