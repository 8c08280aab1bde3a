#include "troupe/ops/cuda/libraries/cublaslt.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/tensor/cuda/cuda_error.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("cuBLASLt is loaded on first use, in the version of its header") {
  CHECK(troupe::cuda::cublaslt().get_version() / 10000 == CUBLAS_VER_MAJOR);
}

TEST_CASE("errors of CUDA and cuBLASLt are thrown with the library's text and the calling function") {
  CHECK_THROWS_MATCHES(troupe::check(cudaErrorInvalidValue), troupe::cuda_error,
                       MessageMatches(ContainsSubstring("CUDA: invalid argument (") &&
                                      ContainsSubstring("CATCH2_INTERNAL_TEST")));
  CHECK_THROWS_MATCHES(troupe::cuda::check(CUBLAS_STATUS_NOT_SUPPORTED), troupe::cuda_error,
                       MessageMatches(ContainsSubstring("cuBLASLt: ")));
  troupe::check(cudaSuccess);
  troupe::cuda::check(CUBLAS_STATUS_SUCCESS);
}
