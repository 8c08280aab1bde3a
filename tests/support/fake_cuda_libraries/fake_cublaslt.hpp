#pragma once
#include <cublasLt.h>

#include <functional>
#include <vector>

#include "support/fake_cuda_libraries/fake_library.hpp"
#include "troupe/ops/kernels/products.hpp"

namespace troupe::testing {

/// A product as the descriptors tell the fake cuBLASLt, in the project's row-major terms.
struct described_product {
  matrix_product_shape shape;
  dtype from = dtype::f32, to = dtype::f32;
  bool has_bias = false;
  std::uint32_t alignment_bytes = 0;       ///< that the preference promises
  std::uint32_t bias_alignment_bytes = 0;  ///< of the bias pointer that the heuristics see, up to 256
};

/// In place of cuBLASLt: products are computed by the CPU's kernels, in the order of the stream, in which
/// they also overwrite their workspace. A call that breaks a promise (an operand less aligned than the
/// preference said, a workspace that is too small, an algorithm of another product) is answered
/// CUBLAS_STATUS_INVALID_VALUE.
struct fake_cublaslt : fake_library {
  /// What the candidates of a product's heuristics are; one that works unless set.
  std::function<std::vector<cublasStatus_t>(const described_product&)> candidates;
};

/// The process's one. A program that links fake_cublaslt.cpp has no other cuBLASLt. Where the environment
/// variable TROUPE_EMULATED_LIBRARIES is "none" heuristics find nothing unless told otherwise.
fake_cublaslt& the_fake_cublaslt();

}  // namespace troupe::testing
