#include "troupe/ops/cuda/libraries/cublaslt.hpp"

#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/dynamic_library.hpp"

namespace troupe::cuda {
namespace {

library_location place() {
  return {.file_name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR),
          .folder = TROUPE_CUDA_LIBRARY_DIR,
          .need = "matrix products on GPUs need cuBLASLt",
          .remedy =
              "it comes with the CUDA Toolkit, and its folder must be known to ldconfig or stand in "
              "LD_LIBRARY_PATH"};
}

cublaslt_functions find_all() {
  cublaslt_functions all;
  dynamic_library library(place());
  library.find(all.create, "cublasLtCreate");
  library.find(all.get_version, "cublasLtGetVersion");
  library.find(all.get_status_string, "cublasLtGetStatusString");
  library.find(all.desc_create, "cublasLtMatmulDescCreate");
  library.find(all.desc_destroy, "cublasLtMatmulDescDestroy");
  library.find(all.desc_set, "cublasLtMatmulDescSetAttribute");
  library.find(all.layout_create, "cublasLtMatrixLayoutCreate");
  library.find(all.layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.find(all.layout_set, "cublasLtMatrixLayoutSetAttribute");
  library.find(all.preference_create, "cublasLtMatmulPreferenceCreate");
  library.find(all.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.find(all.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  library.find(all.get_heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.find(all.matmul, "cublasLtMatmul");
  return all;
}

}  // namespace

const cublaslt_functions& cublaslt() {
  static const auto all = find_all();
  return all;
}

void check(cublasStatus_t status, const std::source_location& location) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  check_not_lost(location);
  throw cuda_error("cuBLASLt", cublaslt().get_status_string(status), location);
}

}  // namespace troupe::cuda
