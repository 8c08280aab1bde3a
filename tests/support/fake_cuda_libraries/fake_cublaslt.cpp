#include "support/fake_cuda_libraries/fake_cublaslt.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "support/cuda_emulation/runtime/stream_work.hpp"
#include "support/fake_cuda_libraries/offered.hpp"
#include "troupe/ops/cuda/libraries/cublaslt.hpp"
#include "troupe/ops/cuda/loops/alignment.hpp"
#include "troupe/ops/kernels/all.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe::testing {
namespace {

constexpr std::size_t workspace_bytes = 4096;

struct fake_layout {
  cudaDataType type;
  std::int64_t rows, columns, leading, pair = 0;
  std::int32_t batch = 1;
};

struct fake_description {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t left = CUBLAS_OP_N, right = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct fake_preference {
  std::uint32_t alignment_bytes = 0;
};

template <class Fake, class Opaque>
Fake& fake_of(Opaque* opaque) {
  return *reinterpret_cast<Fake*>(opaque);
}

cublasStatus_t on_call(std::string_view function) {
  return static_cast<cublasStatus_t>(the_fake_cublaslt().on_call(function));
}

template <class Opaque, class Fake>
cublasStatus_t create(std::string_view function, Opaque** made, Fake fake) {
  if (auto status = on_call(function)) return status;
  *made = reinterpret_cast<Opaque*>(new Fake(fake));
  the_fake_cublaslt().on_create();
  return CUBLAS_STATUS_SUCCESS;
}

template <class Fake, class Opaque>
cublasStatus_t destroy(Opaque* opaque) {
  delete reinterpret_cast<Fake*>(opaque);
  the_fake_cublaslt().on_destroy();
  return CUBLAS_STATUS_SUCCESS;
}

template <class Value>
cublasStatus_t copy_to(Value& to, const void* from, std::size_t size_bytes) {
  if (size_bytes != sizeof(to)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, sizeof(to));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_description(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t attribute,
                               const void* value, std::size_t size_bytes) {
  if (auto status = on_call("cublasLtMatmulDescSetAttribute")) return status;
  auto& fake = fake_of<fake_description>(of);
  cudaDataType_t bias_type;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return copy_to(fake.left, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return copy_to(fake.right, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return copy_to(fake.epilogue, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return copy_to(fake.bias, value, size_bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return copy_to(bias_type, value, size_bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t set_layout(cublasLtMatrixLayout_t of, cublasLtMatrixLayoutAttribute_t attribute,
                          const void* value, std::size_t size_bytes) {
  if (auto status = on_call("cublasLtMatrixLayoutSetAttribute")) return status;
  auto& fake = fake_of<fake_layout>(of);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return copy_to(fake.batch, value, size_bytes);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return copy_to(fake.pair, value, size_bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t set_preference(cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t attribute,
                              const void* value, std::size_t size_bytes) {
  if (auto status = on_call("cublasLtMatmulPreferenceSetAttribute")) return status;
  if (attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
    return copy_to(fake_of<fake_preference>(of).alignment_bytes, value, size_bytes);
  return CUBLAS_STATUS_SUCCESS;
}

dtype dtype_of(cudaDataType type) {
  if (type == CUDA_R_16BF) return dtype::bf16;
  return type == CUDA_R_16F ? dtype::f16 : dtype::f32;
}

/// cuBLASLt computes the transposed result, so that its left operand is the project's right one.
described_product described(const fake_description& how, const fake_layout& left, const fake_layout& result) {
  described_product of;
  of.shape = {.rows = result.columns,
              .columns = result.rows,
              .inner = how.left == CUBLAS_OP_T ? left.rows : left.columns,
              .batch = result.batch,
              .left_is_transposed = how.right == CUBLAS_OP_T,
              .right_is_transposed = how.left == CUBLAS_OP_T,
              .right_is_shared = left.batch > 1 && left.pair == 0};
  of.from = dtype_of(left.type);
  of.to = dtype_of(result.type);
  of.has_bias = (how.epilogue & CUBLASLT_EPILOGUE_BIAS) == CUBLASLT_EPILOGUE_BIAS;
  if (of.has_bias) of.bias_alignment_bytes = cuda::alignment_of(reinterpret_cast<std::uintptr_t>(how.bias));
  return of;
}

/// An algorithm whose fields contain the product for which it was chosen.
cublasLtMatmulAlgo_t algorithm_for(const described_product& of) {
  return {{static_cast<std::uint64_t>(of.shape.rows), static_cast<std::uint64_t>(of.shape.columns),
           static_cast<std::uint64_t>(of.shape.inner), static_cast<std::uint64_t>(of.shape.batch),
           of.alignment_bytes, of.bias_alignment_bytes}};
}

cublasStatus_t get_heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t left,
                             cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t result,
                             cublasLtMatmulPreference_t preference, int most,
                             cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (auto status = on_call("cublasLtMatmulAlgoGetHeuristic")) return status;
  auto of =
      described(fake_of<fake_description>(how), fake_of<fake_layout>(left), fake_of<fake_layout>(result));
  of.alignment_bytes = fake_of<fake_preference>(preference).alignment_bytes;
  const auto& candidates = the_fake_cublaslt().candidates;
  auto states = candidates ? candidates(of) : std::vector{CUBLAS_STATUS_SUCCESS};
  *found = std::min(most, static_cast<int>(states.size()));
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    results[i].state = states[static_cast<std::size_t>(i)];
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    results[i].algo = algorithm_for(of);
    results[i].workspaceSize = workspace_bytes;
  }
  return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/// Whether the right operand's layout, and the dense rows of all three, are those of the product.
bool fits(const described_product& of, const fake_layout& left, const fake_layout& right,
          const fake_layout& result) {
  auto inner = of.shape.left_is_transposed ? right.columns : right.rows;
  auto columns = of.shape.left_is_transposed ? right.rows : right.columns;
  return inner == of.shape.inner && columns == of.shape.rows && right.batch == of.shape.batch &&
         left.leading == left.rows && right.leading == right.rows && result.leading == result.rows;
}

tensor operand(const void* elements, shape extents, dtype type) {
  return tensor::wrap(nullptr, static_cast<std::byte*>(const_cast<void*>(elements)), std::move(extents),
                      type);
}

/// A copy of f32 elements with the 10 bits of TF32 behind the point, to nearest.
tensor rounded_to_tf32(const tensor& x) {
  auto result = x.clone();
  for (auto& value : result.values<float>())
    value = std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000) & ~0x1fffU);
  return result;
}

bool was_chosen_for(const described_product& of, const cublasLtMatmulAlgo_t& algorithm,
                    std::initializer_list<const void*> matrices) {
  const auto& fields = algorithm.data;
  const auto expected = algorithm_for(of);
  auto alignment = fields[4];
  for (const auto* each : matrices)
    if (alignment == 0 || reinterpret_cast<std::uintptr_t>(each) % alignment != 0) return false;
  return std::equal(fields, fields + 4, expected.data) && of.bias_alignment_bytes >= fields[5];
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t how, const void* alpha, const void* left,
                      cublasLtMatrixLayout_t left_layout, const void* right,
                      cublasLtMatrixLayout_t right_layout, const void* beta, const void*,
                      cublasLtMatrixLayout_t, void* result, cublasLtMatrixLayout_t result_layout,
                      const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t size_bytes,
                      cudaStream_t stream) {
  if (auto status = on_call("cublasLtMatmul")) return status;
  const auto& description = fake_of<fake_description>(how);
  auto of = described(description, fake_of<fake_layout>(left_layout), fake_of<fake_layout>(result_layout));
  auto is_promised = *static_cast<const float*>(alpha) == 1 && workspace && size_bytes >= workspace_bytes &&
                     was_chosen_for(of, *algorithm, {left, right, result}) &&
                     fits(of, fake_of<fake_layout>(left_layout), fake_of<fake_layout>(right_layout),
                          fake_of<fake_layout>(result_layout));
  if (!is_promised) return CUBLAS_STATUS_INVALID_VALUE;
  of.shape.accumulate = *static_cast<const float*>(beta) == 1;
  auto pairs = of.shape.batch, right_pairs = of.shape.right_is_shared ? 1 : pairs;
  auto a = operand(right, {pairs, of.shape.rows, of.shape.inner}, of.from);
  auto b = operand(left, {right_pairs, of.shape.inner, of.shape.columns}, of.from);
  auto c = operand(result, {pairs, of.shape.rows, of.shape.columns}, of.to);
  auto bias = of.has_bias ? operand(description.bias, {of.shape.columns}, of.from) : tensor();
  auto is_tf32 = description.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  emulation::enqueue(stream, [=]() mutable {
    std::memset(workspace, 0xff, workspace_bytes);
    if (is_tf32) a = rounded_to_tf32(a), b = rounded_to_tf32(b);
    cpu_kernels().products.matrix_product(of.shape, a, b, bias, c);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cuda::cublaslt_functions functions() {
  cuda::cublaslt_functions all;
  all.create = [](cublasLtHandle_t* made) {
    if (auto status = on_call("cublasLtCreate")) return status;
    *made = reinterpret_cast<cublasLtHandle_t>(&the_fake_cublaslt());
    return CUBLAS_STATUS_SUCCESS;
  };
  all.get_version = [] { return std::size_t{CUBLAS_VERSION}; };
  all.get_status_string = [](cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_OTHER";
  };
  all.desc_create = [](cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t) {
    return create("cublasLtMatmulDescCreate", made, fake_description{.compute = compute});
  };
  all.desc_destroy = destroy<fake_description>;
  all.desc_set = set_description;
  all.layout_create = [](cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                         std::uint64_t columns, std::int64_t leading) {
    return create(
        "cublasLtMatrixLayoutCreate", made,
        fake_layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
  };
  all.layout_destroy = destroy<fake_layout>;
  all.layout_set = set_layout;
  all.preference_create = [](cublasLtMatmulPreference_t* made) {
    return create("cublasLtMatmulPreferenceCreate", made, fake_preference());
  };
  all.preference_destroy = destroy<fake_preference>;
  all.preference_set = set_preference;
  all.get_heuristic = get_heuristic;
  all.matmul = matmul;
  return all;
}

}  // namespace

fake_cublaslt& the_fake_cublaslt() {
  static auto* one = [] {
    auto* made = new fake_cublaslt;
    if (!libraries_are_offered())
      made->candidates = [](const auto&) { return std::vector<cublasStatus_t>(); };
    return made;
  }();
  return *one;
}

}  // namespace troupe::testing

namespace troupe::cuda {

const cublaslt_functions& cublaslt() {
  static const auto all = testing::functions();
  return all;
}

void check(cublasStatus_t status, const std::source_location& where) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw cuda_error("cuBLASLt", cublaslt().get_status_string(status), where);
}

}  // namespace troupe::cuda
