#pragma once
#include <cublasLt.h>

#include <functional>
#include <vector>

#include "support/fake_cuda_libraries/fake_library.hpp"
#include "troupe/ops/kernels/products.hpp"

namespace troupe::testing {

/// A product as described by the descriptors passed to the fake cuBLASLt, in the project's row-major terms.
struct described_product {
  matrix_product_shape shape;
  dtype from = dtype::f32, to = dtype::f32;
  bool has_bias = false;
  std::uint32_t alignment_bytes = 0;       ///< alignment that the preference promises
  std::uint32_t bias_alignment_bytes = 0;  ///< of the bias pointer that the heuristics see, up to 256
};

/// Replaces cuBLASLt: the CPU's kernels compute products, in stream order, and also overwrite the workspace.
/// A call that violates its preconditions (an operand less aligned than the preference states, a workspace
/// that is too small, an algorithm of another product) returns CUBLAS_STATUS_INVALID_VALUE.
struct fake_cublaslt : fake_library {
  /// The candidates that the heuristics return for a product; by default one that works.
  std::function<std::vector<cublasStatus_t>(const described_product&)> candidates;
};

/// The instance of this process. A program that links fake_cublaslt.cpp has no other cuBLASLt. If the
/// environment variable TROUPE_EMULATED_LIBRARIES is "none", the heuristics find nothing by default.
fake_cublaslt& the_fake_cublaslt();

}  // namespace troupe::testing
