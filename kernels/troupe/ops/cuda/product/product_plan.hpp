#pragma once
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <string>

#include "troupe/ops/kernels/products.hpp"
#include "troupe/ops/matmul_precision.hpp"

namespace troupe::cuda {

/// All parameters that decide how cuBLASLt computes a product.
struct product_key {
  matrix_product_shape shape;  ///< its relu is always false
  dtype from = dtype::f32, to = dtype::f32;
  std::uint32_t alignment_bytes = 0;                   ///< of all matrices, a power of two up to 256
  std::uint32_t bias_alignment_bytes = 0;              ///< likewise; 0: no bias
  matmul_precision precision = matmul_precision::f32;  ///< of f32 operands
  auto operator<=>(const product_key&) const = default;
};

/// For messages, such as "bf16 [4, 5] x [5, 3]^T to f32, 2 pairs, bias, aligned to 16 bytes".
std::string to_string(const product_key& key);

/// Calls one of cuBLASLt's destroy functions.
struct cublaslt_delete {
  void operator()(cublasLtMatmulDesc_t handle) const;
  void operator()(cublasLtMatrixLayout_t handle) const;
};

/// cuBLASLt's descriptors for one product, and the chosen algorithm. Not thread-safe.
class product_plan {
 public:
  /// Empty if cuBLASLt has no algorithm. Throws cuda_error if it fails.
  static std::optional<product_plan> make(cublasLtHandle_t handle, const product_key& key);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Queues the product; pointers as in matrix_product. Returns false, with
  /// nothing queued, if cuBLASLt does not support it after all.
  bool run(cublasLtHandle_t handle, cudaStream_t stream, const void* a, const void* b, const void* bias,
           void* c, void* workspace);

 private:
  using layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, cublaslt_delete>;

  explicit product_plan(const product_key& key);
  static layout layout_of(dtype type, std::int64_t rows, std::int64_t columns, std::int64_t batch);
  void describe(const product_key& key);
  /// Returns false if there is no algorithm.
  bool choose(cublasLtHandle_t handle, std::uint32_t alignment_bytes);

  std::unique_ptr<cublasLtMatmulDescOpaque_t, cublaslt_delete> description_;
  layout left_, right_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_bytes_ = 0;
  float beta_;
};

}  // namespace troupe::cuda
