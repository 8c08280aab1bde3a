#pragma once
#include <cublasLt.h>

#include <source_location>

namespace troupe::cuda {

/// cuBLASLt's functions. The library is loaded by the first matrix product on a GPU: it is large, and
/// processes that compute on the CPU do not need it.
struct cublaslt_functions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtGetVersion) get_version = nullptr;
  decltype(&cublasLtGetStatusString) get_status_string = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) get_heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

/// Throws bad_input, naming the file and what to do, if the library cannot be loaded. Thread-safe.
const cublaslt_functions& cublaslt();

void check(cublasStatus_t status, const std::source_location& location = std::source_location::current());

}  // namespace troupe::cuda
