#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/libraries/cublaslt.hpp"
#include "troupe/ops/cuda/loops/alignment.hpp"
#include "troupe/ops/cuda/product/product_plan.hpp"
#include "troupe/ops/cuda/product/tiled_product.hpp"
#include "troupe/ops/cuda/reductions/reductions.hpp"
#include "troupe/ops/matmul_precision.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::cuda {
namespace {

/// The cached plans of one GPU. A captured product does not need its plan again: the graph holds the kernels'
/// arguments, and the workspace belongs to the capture's pool.
class product_plans {
 public:
  /// Returns false if cuBLASLt has no algorithm.
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
  /// Maximum number of plans; limits memory if shapes change all the time.
  static constexpr std::size_t max_plans = 1024;

  /// Empty if cuBLASLt has no algorithm.
  std::optional<product_plan>& plan_for(const product_key& key) {
    auto at = plans_.find(key);
    if (at != plans_.end()) return at->second;
    auto made = product_plan::make(handle_, key);
    if (plans_.size() >= max_plans) plans_.clear();
    return plans_.emplace(key, std::move(made)).first->second;
  }

  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<product_key, std::optional<product_plan>> plans_;
};

product_plans& plans_of(device target) {
  // Never destroyed: the driver may be unloaded before static objects are destroyed.
  static auto* all = new std::deque<product_plans>(static_cast<std::size_t>(num_cuda_devices()));
  return all->at(static_cast<std::size_t>(target.index));
}

bool by_cublaslt(const product_key& key, const tensor& a, const tensor& b, const tensor& bias, tensor& c) {
  try {
    return plans_of(c.device()).run(key, a, b, bias, c);
  } catch (const cuda_error& problem) {
    throw cuda_error(problem, "in the product " + to_string(key));
  }
}

/// The common alignment of all matrices of the batch.
std::uint32_t common_alignment(const matrix_product_shape& product, const tensor& a, const tensor& b,
                               const tensor& c) {
  auto pair = [&](std::int64_t elements) { return product.batch == 1 ? 0 : elements; };
  return alignment_of(begin_of(a, pair(product.rows * product.inner)) |
                      begin_of(b, product.right_is_shared ? 0 : pair(product.inner * product.columns)) |
                      begin_of(c, pair(product.rows * product.columns)));
}

/// Computes the product by cuBLASLt in f32, then applies the epilogue and rounds once.
bool product_then_epilogue(const matrix_product_shape& extents, product_key key, const tensor& a,
                           const tensor& b, const tensor& bias, tensor& c) {
  key.shape.accumulate = false;
  key.bias_alignment_bytes = 0;
  key.to = dtype::f32;
  auto product = tensor::empty({extents.batch, extents.rows, extents.columns}, dtype::f32, c.device());
  key.alignment_bytes = common_alignment(extents, a, b, product);
  if (!by_cublaslt(key, a, b, {}, product)) return false;
  product_epilogue(extents, product, bias, c);
  return true;
}

/// As in troupe/ops/kernels/products.hpp, on one GPU, with sums in f32, and products too unless
/// set_matmul_precision has chosen TF32 (which tiled_product() never uses). Computed by cuBLASLt; if it has
/// no algorithm with the bias, by cuBLASLt without it and product_epilogue(); if it has no algorithm at all,
/// by tiled_product(). The choice depends only on shape, dtypes and alignment, so equal arguments give equal
/// bits on equal GPUs with one version of cuBLASLt. Throws cuda_error, naming the product.
void matrix_product(const matrix_product_shape& pairs, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c) {
  auto product = pairs.joined();
  if (c.num_elements() == 0) return;
  auto has_epilogue = bias.defined() || product.relu;
  if (product.inner == 0 && !has_epilogue) {
    if (!product.accumulate) c.fill_zero();
    return;
  }
  if (product.inner == 0) return tiled_product(product, a, b, bias, c);
  // cuBLASLt does not document whether its ReLU propagates NaN, so ReLU is a separate kernel.
  auto plain = product;
  plain.relu = false;
  product_key key{plain,
                  a.dtype(),
                  c.dtype(),
                  common_alignment(product, a, b, c),
                  bias.defined() ? alignment_of(begin_of(bias, 0)) : 0,
                  current_matmul_precision()};
  if (by_cublaslt(key, a, b, bias, c)) {
    if (product.relu) activation().relu_forward(c, c);
    return;
  }
  if (has_epilogue && product_then_epilogue(product, key, a, b, bias, c)) return;
  tiled_product(product, a, b, bias, c);
}

}  // namespace

product_kernels products() { return {.matrix_product = matrix_product, .row_sum = row_sum}; }

}  // namespace troupe::cuda
