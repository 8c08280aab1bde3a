#include "troupe/ops/cuda/cudnn/cudnn.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/ops/cuda/libraries/cudnn_version.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("cuDNN is loaded on first use, in the version of its header") {
  CHECK(troupe::cuda::cudnn().get_version() / 10000 == CUDNN_MAJOR);
  CHECK(troupe::cuda::cudnn_version().starts_with(std::to_string(CUDNN_MAJOR) + "."));
}

TEST_CASE("errors of cuDNN are thrown with the library's text and the calling function") {
  CHECK_THROWS_MATCHES(troupe::cuda::check(CUDNN_STATUS_BAD_PARAM), troupe::cuda_error,
                       MessageMatches(ContainsSubstring("cuDNN: CUDNN_STATUS_BAD_PARAM")));
  troupe::cuda::check(CUDNN_STATUS_SUCCESS);
}
