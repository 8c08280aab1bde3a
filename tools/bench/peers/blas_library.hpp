#pragma once
#include <memory>
#include <string>

#include "bench/products/product_shapes.hpp"

namespace troupe::bench {

/// A library with sgemm, loaded from its file: cblas_sgemm (OpenBLAS, BLIS) or dnnl_sgemm (oneDNN). How many
/// threads it uses is for its own environment variables to say.
class blas_library {
 public:
  /// `text` is NAME=FILE. Throws bad_input if that is no such library.
  explicit blas_library(const std::string& text);

  const std::string& name() const { return name_; }
  /// C = op(A) op(B), all dense.
  void multiply(const product_shape& shape, const float* a, const float* b, float* c) const;

 private:
  std::string name_;
  std::shared_ptr<void> library_;
  void* cblas_ = nullptr;
  void* dnnl_ = nullptr;
};

}  // namespace troupe::bench
