#include "troupe/ops/cuda/cublaslt.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/shared_library.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe::cuda {
namespace {

const std::string file_name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);

[[noreturn]] void refuse(const char* problem) {
  throw bad_input("matrix products on GPUs need cuBLASLt, which cannot be loaded: " +
                  std::string(problem ? problem : file_name) +
                  "; it comes with the CUDA Toolkit, and its folder must be known to ldconfig or stand in "
                  "LD_LIBRARY_PATH");
}

/// From where the loader looks, else from where the build found it.
void* load() {
  auto* library = load_library(file_name, TROUPE_CUDA_LIBRARY_DIR);
  if (!library) refuse(dlerror());
  return library;
}

template <class Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) refuse(dlerror());
}

cublaslt_functions find_all() {
  cublaslt_functions all;
  auto* library = load();
  find(library, all.create, "cublasLtCreate");
  find(library, all.get_version, "cublasLtGetVersion");
  find(library, all.get_status_string, "cublasLtGetStatusString");
  find(library, all.desc_create, "cublasLtMatmulDescCreate");
  find(library, all.desc_destroy, "cublasLtMatmulDescDestroy");
  find(library, all.desc_set, "cublasLtMatmulDescSetAttribute");
  find(library, all.layout_create, "cublasLtMatrixLayoutCreate");
  find(library, all.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(library, all.layout_set, "cublasLtMatrixLayoutSetAttribute");
  find(library, all.preference_create, "cublasLtMatmulPreferenceCreate");
  find(library, all.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(library, all.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(library, all.get_heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(library, all.matmul, "cublasLtMatmul");
  return all;
}

}  // namespace

const cublaslt_functions& cublaslt() {
  static const auto all = find_all();
  return all;
}

void check(cublasStatus_t status, const std::source_location& where) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw cuda_error("cuBLASLt", cublaslt().get_status_string(status), where);
}

}  // namespace troupe::cuda
