#include "troupe/ops/cuda/matrix_product.hpp"

#include <deque>
#include <map>
#include <mutex>

#include "troupe/ops/cuda/cublaslt.hpp"
#include "troupe/ops/cuda/families.hpp"
#include "troupe/ops/cuda/product_plan.hpp"
#include "troupe/ops/cuda/row_sum.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::cuda {
namespace {

/// One GPU's plans, made at the first product of their kind.
class product_plans {
 public:
  void run(const product_key& key, const tensor& a, const tensor& b, const tensor& bias, tensor& c) {
    auto& owner = gpu_at(c.where().index);
    gpu_scope scope(owner.index());
    std::lock_guard lock(mutex_);
    if (!handle_) check(cublaslt().create(&handle_));
    auto& plan = plan_for(key);
    auto bytes = static_cast<std::int64_t>(plan.workspace_bytes());
    auto workspace = bytes > 0 ? tensor::empty({bytes}, dtype::u8, c.where()) : tensor();
    plan.run(handle_, owner.stream(), a.bytes().data(), b.bytes().data(), bias.bytes().data(),
             c.bytes().data(), workspace.bytes().data());
  }

 private:
  /// Shapes that change all the time must not fill the memory.
  static constexpr std::size_t most_plans = 1024;

  product_plan& plan_for(const product_key& key) {
    auto at = plans_.find(key);
    if (at != plans_.end()) return at->second;
    if (plans_.size() >= most_plans) plans_.clear();
    return plans_.try_emplace(key, handle_, key).first->second;
  }

  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<product_key, product_plan> plans_;
};

product_plans& plans_of(device where) {
  // Never destroyed: the driver may be gone before static objects are.
  static auto* all = new std::deque<product_plans>(static_cast<std::size_t>(num_cuda_devices()));
  return all->at(static_cast<std::size_t>(where.index));
}

/// Where one operand's matrices begin, as bits of which the lowest one set is their common alignment.
std::uintptr_t beginnings(const tensor& operand, std::int64_t pair_elements) {
  return reinterpret_cast<std::uintptr_t>(operand.bytes().data()) |
         static_cast<std::uintptr_t>(pair_elements) * size_bytes(operand.type());
}

/// The largest power of two, up to 256, that divides the addresses of all matrices.
std::uint32_t common_alignment(const strided_product_shape& shape, const tensor& a, const tensor& b,
                               const tensor& bias, const tensor& c) {
  const auto& of = shape.of;
  auto pair = [&](const matrix_strides& strides, std::int64_t elements) {
    if (of.batch == 1) return std::int64_t{0};
    return strides.pair > 0 ? strides.pair : elements;
  };
  auto bits = std::uintptr_t{256} | beginnings(a, pair(shape.left, of.rows * of.inner)) |
              beginnings(b, of.right_is_shared ? 0 : pair(shape.right, of.inner * of.columns)) |
              beginnings(bias, 0) | beginnings(c, pair(shape.result, of.rows * of.columns));
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

}  // namespace

void strided_product(const strided_product_shape& shape, const tensor& a, const tensor& b, const tensor& bias,
                     tensor& c) {
  if (c.num_elements() == 0) return;
  if (shape.of.inner == 0) {
    if (!shape.of.accumulate) c.fill_zero();
    return;
  }
  product_key key{shape,
                  a.type(),
                  c.type(),
                  bias.defined(),
                  common_alignment(shape, a, b, bias, c),
                  current_matmul_precision()};
  plans_of(c.where()).run(key, a, b, bias, c);
}

void matrix_product(const matrix_product_shape& of, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c) {
  strided_product({of.joined()}, a, b, bias, c);
}

product_kernels products() { return {.matrix_product = matrix_product, .row_sum = row_sum}; }

}  // namespace troupe::cuda
