#include "troupe/ops/numeric_class.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "support/devices.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/linear.hpp"
#include "troupe/ops/matmul_precision.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

bool has_isas() { return troupe::numeric_class() != "plain"; }

}  // namespace

TEST_CASE("the numeric class names the library, its version and the instruction set") {
  auto name = troupe::numeric_class();
  if (!has_isas()) SKIP("plain kernels have one class");
  CHECK_THAT(name, StartsWith("onednn-") && !EndsWith("-"));
}

TEST_CASE("a cap shows in the numeric class and may be repeated, but not lowered") {
  troupe::cap_isa("sse41");
  if (!has_isas()) SKIP("plain kernels have one class");
  CHECK_THAT(troupe::numeric_class(), EndsWith("-sse41"));
  CHECK_NOTHROW(troupe::cap_isa("sse41"));
  CHECK_NOTHROW(troupe::cap_isa("avx2"));
  CHECK_NOTHROW(troupe::cap_isa("auto"));
}

TEST_CASE("a cap after the first operation is refused") {
  using troupe::tensor;
  troupe::linear_forward(tensor::zeros({2, 2}), tensor::zeros({2, 2}), {});
  if (!has_isas()) SKIP("plain kernels have one class");
  if (troupe::numeric_class().ends_with("sse41")) SKIP("this machine has no more than SSE4.1");
  CHECK_THROWS_AS(troupe::cap_isa("sse41"), std::logic_error);
}

TEST_CASE("an unknown instruction set is refused with the choices") {
  CHECK_THROWS_AS(troupe::cap_isa("avx9"), troupe::bad_input);
  CHECK_THROWS_WITH(troupe::cap_isa("avx9"), ContainsSubstring("avx9") && ContainsSubstring("sse41") &&
                                                 ContainsSubstring("avx512_core_bf16"));
}

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
