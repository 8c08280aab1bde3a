#include "troupe/ops/numeric_class.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/devices.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/matmul_precision.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

TEST_CASE("all processors have one numeric class") { CHECK(troupe::numeric_class() == "cpu-1"); }

TEST_CASE("the numeric class of the CPU is the process's, and that of a GPU names its model and libraries") {
  CHECK(troupe::numeric_class(troupe::device{}) == troupe::numeric_class());
  troupe::device far{troupe::device::kind::cuda, 99};
  CHECK_THROWS_AS(troupe::numeric_class(far), troupe::bad_input);
  for (auto gpu : troupe::testing::gpus_here())
    CHECK_THAT(troupe::numeric_class(gpu),
               StartsWith(troupe::numeric_class() + "+cuda-") && ContainsSubstring("+cublaslt-") &&
                   ContainsSubstring("+cudnn-") && EndsWith(troupe::device_name(gpu)));
}

TEST_CASE("TF32 is in the numeric class of a GPU where it is chosen, and never in that of the CPU") {
  CHECK(troupe::current_matmul_precision() == troupe::matmul_precision::f32);
  auto before = troupe::numeric_class(troupe::device{});
  troupe::set_matmul_precision(troupe::matmul_precision::tf32);
  CHECK(troupe::numeric_class(troupe::device{}) == before);
  for (auto gpu : troupe::testing::gpus_here())
    CHECK_THAT(troupe::numeric_class(gpu), EndsWith("+tf32+" + troupe::device_name(gpu)));
  troupe::set_matmul_precision(troupe::matmul_precision::f32);
  for (auto gpu : troupe::testing::gpus_here())
    CHECK_THAT(troupe::numeric_class(gpu), !ContainsSubstring("tf32"));
}
