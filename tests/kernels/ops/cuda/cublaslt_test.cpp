#include "troupe/ops/cuda/cublaslt.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/tensor/cuda/cuda_error.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("cuBLASLt is loaded when it is asked for, in the version of its header") {
  CHECK(troupe::cuda::cublaslt().get_version() / 10000 == CUBLAS_VER_MAJOR);
}

TEST_CASE("what CUDA and cuBLASLt refuse is thrown with their words and the function that called") {
  CHECK_THROWS_MATCHES(troupe::check(cudaErrorInvalidValue), troupe::cuda_error,
                       MessageMatches(ContainsSubstring("CUDA: invalid argument (") &&
                                      ContainsSubstring("CATCH2_INTERNAL_TEST")));
  CHECK_THROWS_MATCHES(troupe::cuda::check(CUBLAS_STATUS_NOT_SUPPORTED), troupe::cuda_error,
                       MessageMatches(ContainsSubstring("cuBLASLt: ")));
  troupe::check(cudaSuccess);
  troupe::cuda::check(CUBLAS_STATUS_SUCCESS);
}
