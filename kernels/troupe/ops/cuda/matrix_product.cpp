#include "troupe/ops/cuda/matrix_product.hpp"

#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "troupe/ops/cuda/alignment.hpp"
#include "troupe/ops/cuda/cublaslt.hpp"
#include "troupe/ops/cuda/families.hpp"
#include "troupe/ops/cuda/product_plan.hpp"
#include "troupe/ops/cuda/row_sum.hpp"
#include "troupe/ops/cuda/tiled_product.hpp"
#include "troupe/ops/matmul_precision.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::cuda {
namespace {

/// One GPU's plans, made at the first product of their kind. A recorded product needs none of them again: the
/// graph has the kernels' arguments, and its workspace is of the recording's pool.
class product_plans {
 public:
  /// Returns false where cuBLASLt has no algorithm.
  bool run(const product_key& key, const tensor& a, const tensor& b, const tensor& bias, tensor& c) {
    auto& owner = gpu_at(c.device().index);
    gpu_scope scope(owner.index());
    std::lock_guard lock(mutex_);
    if (!handle_) check(cublaslt().create(&handle_));
    auto& plan = plan_for(key);
    if (!plan) return false;
    auto bytes = static_cast<std::int64_t>(plan->workspace_bytes());
    auto workspace = bytes > 0 ? tensor::empty({bytes}, dtype::u8, c.device()) : tensor();
    if (plan->run(handle_, owner.stream(), a.bytes().data(), b.bytes().data(), bias.bytes().data(),
                  c.bytes().data(), workspace.bytes().data()))
      return true;
    plan.reset();
    return false;
  }

 private:
  /// Shapes that change all the time must not fill the memory.
  static constexpr std::size_t most_plans = 1024;

  /// Empty where cuBLASLt has no algorithm.
  std::optional<product_plan>& plan_for(const product_key& key) {
    auto at = plans_.find(key);
    if (at != plans_.end()) return at->second;
    auto made = product_plan::make(handle_, key);
    if (plans_.size() >= most_plans) plans_.clear();
    return plans_.emplace(key, std::move(made)).first->second;
  }

  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<product_key, std::optional<product_plan>> plans_;
};

product_plans& plans_of(device where) {
  // Never destroyed: the driver may be gone before static objects are.
  static auto* all = new std::deque<product_plans>(static_cast<std::size_t>(num_cuda_devices()));
  return all->at(static_cast<std::size_t>(where.index));
}

bool by_cublaslt(const product_key& key, const tensor& a, const tensor& b, const tensor& bias, tensor& c) {
  try {
    return plans_of(c.device()).run(key, a, b, bias, c);
  } catch (const cuda_error& problem) {
    throw cuda_error(problem, "in the product " + to_string(key));
  }
}

/// Of all pairs' matrices.
std::uint32_t common_alignment(const matrix_product_shape& of, const tensor& a, const tensor& b,
                               const tensor& c) {
  auto pair = [&](std::int64_t elements) { return of.batch == 1 ? 0 : elements; };
  return alignment_of(begin_of(a, pair(of.rows * of.inner)) |
                      begin_of(b, of.right_is_shared ? 0 : pair(of.inner * of.columns)) |
                      begin_of(c, pair(of.rows * of.columns)));
}

/// By cuBLASLt to f32, then rounded once.
bool product_then_epilogue(const matrix_product_shape& of, product_key key, const tensor& a, const tensor& b,
                           const tensor& bias, tensor& c) {
  key.shape.accumulate = false;
  key.bias_alignment_bytes = 0;
  key.to = dtype::f32;
  auto product = tensor::empty({of.batch, of.rows, of.columns}, dtype::f32, c.device());
  key.alignment_bytes = common_alignment(of, a, b, product);
  if (!by_cublaslt(key, a, b, {}, product)) return false;
  product_epilogue(of, product, bias, c);
  return true;
}

}  // namespace

void matrix_product(const matrix_product_shape& pairs, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c) {
  auto of = pairs.joined();
  if (c.num_elements() == 0) return;
  auto has_epilogue = bias.defined() || of.relu;
  if (of.inner == 0 && !has_epilogue) {
    if (!of.accumulate) c.fill_zero();
    return;
  }
  if (of.inner == 0) return tiled_product(of, a, b, bias, c);
  // cuBLASLt does not say that its ReLU keeps NaN, so it gets products without.
  auto plain = of;
  plain.relu = false;
  product_key key{plain,
                  a.dtype(),
                  c.dtype(),
                  common_alignment(of, a, b, c),
                  bias.defined() ? alignment_of(begin_of(bias, 0)) : 0,
                  current_matmul_precision()};
  if (by_cublaslt(key, a, b, bias, c)) {
    if (of.relu) activation().relu_forward(c, c);
    return;
  }
  if (has_epilogue && product_then_epilogue(of, key, a, b, bias, c)) return;
  tiled_product(of, a, b, bias, c);
}

product_kernels products() { return {.matrix_product = matrix_product, .row_sum = row_sum}; }

}  // namespace troupe::cuda
