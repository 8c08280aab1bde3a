#include "troupe/ops/cuda/product/product_plan.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/libraries/cublaslt.hpp"

// cuBLASLt's matrices are column-major: what is [rows, columns] to us is the transposed [columns, rows] to
// it. So it computes C^T = op(B)^T op(A)^T: its left operand is our B, its right one our A, and its rows are
// our columns, along which it adds a bias, as we need it.

namespace troupe::cuda {
namespace {

constexpr std::size_t max_workspace_bytes = std::size_t{32} << 20;

cudaDataType_t data_type(dtype type) {
  if (type == dtype::f32) return CUDA_R_32F;
  if (type == dtype::bf16) return CUDA_R_16BF;
  if (type == dtype::f16) return CUDA_R_16F;
  throw_invalid("matrix_product", "f32, bf16 or f16", to_string(type));
}

cublasLtEpilogue_t epilogue_of(const product_key& key) {
  return key.bias_alignment_bytes > 0 ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// 16-bit operands are multiplied as they are, whatever the precision.
cublasComputeType_t compute_type(const product_key& key) {
  auto is_tf32 = key.from == dtype::f32 && key.precision == matmul_precision::tf32;
  return is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasOperation_t operation(bool is_transposed) { return is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

template <class Value>
void set(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublaslt().desc_set(handle, attribute, &value, sizeof(value)));
}
template <class Value>
void set(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
  check(cublaslt().layout_set(handle, attribute, &value, sizeof(value)));
}

struct preference_delete {
  void operator()(cublasLtMatmulPreference_t handle) const { cublaslt().preference_destroy(handle); }
};

/// Limits on algorithms: workspace size, and no split-K reduction that rounds partial sums to the result's
/// dtype.
class preference {
 public:
  explicit preference(std::uint32_t alignment_bytes) {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublaslt().preference_create(&made));
    preference_.reset(made);
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, max_workspace_bytes);
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    for (auto operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(operand, alignment_bytes);
  }

  cublasLtMatmulPreference_t get() const { return preference_.get(); }

 private:
  template <class Value>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    check(cublaslt().preference_set(preference_.get(), attribute, &value, sizeof(value)));
  }

  std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, preference_delete> preference_;
};

/// Returns false if the library does not support the product; throws for other failures.
bool is_supported(cublasStatus_t status,
                  const std::source_location& location = std::source_location::current()) {
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  check(status, location);
  return true;
}

std::string matrix(std::int64_t rows, std::int64_t columns, bool is_transposed) {
  if (is_transposed) std::swap(rows, columns);
  return "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]" + (is_transposed ? "^T" : "");
}

}  // namespace

void cublaslt_delete::operator()(cublasLtMatmulDesc_t handle) const { cublaslt().desc_destroy(handle); }
void cublaslt_delete::operator()(cublasLtMatrixLayout_t handle) const { cublaslt().layout_destroy(handle); }

std::string to_string(const product_key& key) {
  const auto& product = key.shape;
  auto text = std::string(to_string(key.from)) + " " +
              matrix(product.rows, product.inner, product.left_is_transposed) + " x " +
              matrix(product.inner, product.columns, product.right_is_transposed) + " to " +
              std::string(to_string(key.to));
  if (product.batch > 1) text += ", " + std::to_string(product.batch) + " pairs";
  if (product.right_is_shared) text += ", one right matrix";
  if (product.accumulate) text += ", accumulated";
  if (key.bias_alignment_bytes > 0)
    text += ", bias aligned to " + std::to_string(key.bias_alignment_bytes) + " bytes";
  return text + ", aligned to " + std::to_string(key.alignment_bytes) + " bytes";
}

std::optional<product_plan> product_plan::make(cublasLtHandle_t handle, const product_key& key) {
  if (key.shape.batch > INT32_MAX) return std::nullopt;  // cuBLASLt counts pairs in 32 bits
  product_plan made(key);
  if (!made.choose(handle, key.alignment_bytes)) return std::nullopt;
  return made;
}

product_plan::product_plan(const product_key& key) : beta_(key.shape.accumulate ? 1.0F : 0.0F) {
  describe(key);
}

/// Of dense row-major [rows, columns].
product_plan::layout product_plan::layout_of(dtype type, std::int64_t rows, std::int64_t columns,
                                             std::int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublaslt().layout_create(&made, data_type(type), static_cast<std::uint64_t>(columns),
                                 static_cast<std::uint64_t>(rows), columns));
  layout result(made);
  set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
  set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, rows * columns);
  return result;
}

void product_plan::describe(const product_key& key) {
  const auto& product = key.shape;
  cublasLtMatmulDesc_t made = nullptr;
  check(cublaslt().desc_create(&made, compute_type(key), CUDA_R_32F));
  description_.reset(made);
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, operation(product.right_is_transposed));
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, operation(product.left_is_transposed));
  set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(key));
  if (key.bias_alignment_bytes > 0) {
    set(made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(key.from));
    // The heuristics derive the alignment from the pointer and do not dereference it.
    set(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
        reinterpret_cast<const void*>(std::uintptr_t{key.bias_alignment_bytes}));
  }
  auto as_it_lies = [&](bool is_transposed, std::int64_t rows, std::int64_t columns) {
    if (is_transposed) std::swap(rows, columns);
    return layout_of(key.from, rows, columns, product.batch);
  };
  left_ = as_it_lies(product.right_is_transposed, product.inner, product.columns);
  if (product.right_is_shared) set(left_.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, std::int64_t{0});
  right_ = as_it_lies(product.left_is_transposed, product.rows, product.inner);
  result_ = layout_of(key.to, product.rows, product.columns, product.batch);
}

bool product_plan::choose(cublasLtHandle_t handle, std::uint32_t alignment_bytes) {
  preference wanted(alignment_bytes);
  std::array<cublasLtMatmulHeuristicResult_t, 8> candidates{};  // the fastest first
  int found = 0;
  if (!is_supported(cublaslt().get_heuristic(handle, description_.get(), left_.get(), right_.get(),
                                             result_.get(), result_.get(), wanted.get(),
                                             static_cast<int>(candidates.size()), candidates.data(), &found)))
    return false;
  auto end = candidates.begin() + found;
  auto best = std::find_if(candidates.begin(), end,
                           [](const auto& each) { return each.state == CUBLAS_STATUS_SUCCESS; });
  if (best == end) return false;
  algorithm_ = best->algo;
  workspace_bytes_ = best->workspaceSize;
  return true;
}

bool product_plan::run(cublasLtHandle_t handle, cudaStream_t stream, const void* a, const void* b,
                       const void* bias, void* c, void* workspace) {
  if (bias) set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const float alpha = 1;
  return is_supported(cublaslt().matmul(handle, description_.get(), &alpha, b, left_.get(), a, right_.get(),
                                        &beta_, c, result_.get(), c, result_.get(), &algorithm_, workspace,
                                        workspace_bytes_, stream));
}

}  // namespace troupe::cuda
