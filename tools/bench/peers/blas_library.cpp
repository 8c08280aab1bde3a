#include "bench/peers/blas_library.hpp"

#include <dlfcn.h>

#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

// As in cblas.h and dnnl.h.
constexpr int row_major = 101, as_it_is = 111, transposed = 112;
using cblas_function = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                                const float* a, int lda, const float* b, int ldb, float beta, float* c,
                                int ldc);
using dnnl_function = int (*)(char trans_a, char trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                              float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                              float beta, float* c, std::int64_t ldc);

}  // namespace

blas_library::blas_library(const std::string& text) {
  auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw bad_input("--library " + text +
                    ": expected NAME=FILE, for example openblas=/usr/lib/libopenblas.so.0");
  name_ = text.substr(0, equals);
  auto* loaded = dlopen(text.substr(equals + 1).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) throw bad_input("--library " + text + ": " + dlerror());
  library_ = {loaded, [](void* library) { dlclose(library); }};
  cblas_ = dlsym(loaded, "cblas_sgemm");
  dnnl_ = dlsym(loaded, "dnnl_sgemm");
  if (!cblas_ && !dnnl_)
    throw bad_input("--library " + text + ": expected a library with cblas_sgemm or dnnl_sgemm");
}

void blas_library::multiply(const product_shape& shape, const float* a, const float* b, float* c) const {
  auto lda = shape.transpose_a ? shape.rows : shape.inner,
       ldb = shape.transpose_b ? shape.inner : shape.columns;
  if (dnnl_) {
    reinterpret_cast<dnnl_function>(dnnl_)(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N',
                                           shape.rows, shape.columns, shape.inner, 1, a, lda, b, ldb, 0, c,
                                           shape.columns);
    return;
  }
  auto as_int = [](std::int64_t extent) { return static_cast<int>(extent); };
  reinterpret_cast<cblas_function>(cblas_)(row_major, shape.transpose_a ? transposed : as_it_is,
                                           shape.transpose_b ? transposed : as_it_is, as_int(shape.rows),
                                           as_int(shape.columns), as_int(shape.inner), 1, a, as_int(lda), b,
                                           as_int(ldb), 0, c, as_int(shape.columns));
}

}  // namespace troupe::bench
