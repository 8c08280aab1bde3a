#include "troupe/ops/cuda/convolution/convolution_passes.hpp"

#include <deque>
#include <list>
#include <mutex>
#include <optional>

#include "troupe/ops/cuda/cudnn/convolution_plan.hpp"
#include "troupe/ops/cuda/loops/alignment.hpp"
#include "troupe/ops/kernels/all.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::cuda {
namespace {

/// The tensors of one pass; the pass decides which is the result.
struct convolution_operands {
  tensor x, weight, y;
};

/// The cached plans of one GPU. A captured convolution does not need its plan again: the graph holds the
/// kernels' arguments, and the workspace belongs to the capture's pool.
class convolution_plans {
 public:
  /// Returns false if cuDNN does not support it.
  bool run(const convolution_key& key, const convolution_operands& given) {
    auto& owner = gpu_at(given.x.device().index);
    gpu_scope scope(owner.index());
    std::lock_guard lock(mutex_);
    if (!handle_) check(cudnn().create(&handle_));
    check(cudnn().set_stream(handle_, owner.stream()));
    auto& plan = plan_for(key);
    if (!plan) return false;
    auto operands = converted(given, key.type);
    auto bytes = static_cast<std::int64_t>(plan->workspace_bytes());
    auto workspace = bytes > 0 ? tensor::empty({bytes}, dtype::u8, given.x.device()) : tensor();
    if (plan->run(handle_, operands.x.bytes().data(), operands.weight.bytes().data(),
                  operands.y.bytes().data(), workspace.bytes().data()))
      return true;
    plan.reset();
    return false;
  }

 private:
  /// Maximum number of plans; limits memory if shapes change all the time.
  static constexpr std::size_t max_plans = 256;

  struct known_plan {
    convolution_key key;
    std::optional<convolution_plan> plan;  ///< empty where cuDNN does not support it
  };

  static tensor converted(const tensor& x, dtype type) {
    if (x.dtype() == type) return x;
    auto result = tensor::empty(x.shape(), type, x.device());
    kernels_on(x.device()).convert.cast(x, result);
    return result;
  }
  static convolution_operands converted(const convolution_operands& operands, dtype type) {
    return {converted(operands.x, type), operands.weight, converted(operands.y, type)};
  }

  std::optional<convolution_plan>& plan_for(const convolution_key& key) {
    for (auto& each : plans_)
      if (each.key == key) return each.plan;
    auto made = convolution_plan::make(handle_, key);
    if (plans_.size() >= max_plans) plans_.clear();
    plans_.push_back({key, std::move(made)});
    return plans_.back().plan;
  }

  std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;
  std::list<known_plan> plans_;
};

convolution_plans& plans_of(device target) {
  // Never destroyed: the driver may be unloaded before static objects are destroyed.
  static auto* all = new std::deque<convolution_plans>(static_cast<std::size_t>(num_cuda_devices()));
  return all->at(static_cast<std::size_t>(target.index));
}

/// Weight gradients are computed in f32, the dtype of the accumulated gradient. TF32 is exact for operands
/// converted from bf16 or f16.
convolution_key key_of(convolution_pass pass, const conv2d_problem& problem,
                       const convolution_operands& operands, gradient_mode mode) {
  auto is_weight_gradient = pass == convolution_pass::weight_gradient;
  convolution_key key{.pass = pass,
                      .type = is_weight_gradient ? dtype::f32 : operands.x.dtype(),
                      .are_short = is_weight_gradient && operands.x.dtype() != dtype::f32,
                      .accumulate = mode == gradient_mode::accumulate,
                      .problem = problem};
  key.problem.options.relu = false;
  auto bits = begin_of(operands.weight, 0);
  if (operands.x.dtype() == key.type) bits |= begin_of(operands.x, 0) | begin_of(operands.y, 0);
  key.alignment_bytes = alignment_of(bits);
  return key;
}

}  // namespace

bool cudnn_convolution(convolution_pass pass, const conv2d_problem& conv, const tensor& x,
                       const tensor& weight, const tensor& y, gradient_mode mode) {
  if (!cudnn_if_available()) return false;
  convolution_operands operands{x, weight, y};
  auto key = key_of(pass, conv, operands, mode);
  try {
    return plans_of(x.device()).run(key, operands);
  } catch (const cuda_error& problem) {
    throw cuda_error(problem, "in " + to_string(key));
  }
}

}  // namespace troupe::cuda
