#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/bits.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/fake_cuda_libraries/fake_cublaslt.hpp"
#include "troupe/ops/linear.hpp"
#include "troupe/ops/matmul.hpp"
#include "troupe/tensor/captured_step.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::string_view matmul_call = "cublasLtMatmul", heuristic = "cublasLtMatmulAlgoGetHeuristic";

std::vector<cublasStatus_t> all() { return {CUBLAS_STATUS_SUCCESS}; }
std::vector<cublasStatus_t> nothing() { return {}; }

/// Sets what the fake library's heuristics find, for the length of a test.
class offered {
 public:
  template <class Candidates>
  explicit offered(const Candidates& candidates) {
    the_fake_cublaslt().candidates = candidates;
  }
  ~offered() { the_fake_cublaslt().candidates = {}; }
  offered(const offered&) = delete;
  offered& operator=(const offered&) = delete;
};

/// y = max(x weight^T + bias, 0). Each test takes rows of its own, so that it meets no plan of another.
struct linear_layer {
  std::int64_t rows;
  dtype type = dtype::bf16;
  tensor x = random_tensor({rows, 5}, "x", type).to(first_gpu()),
         weight = random_tensor({7, 5}, "weight", type).to(first_gpu()),
         bias = random_tensor({7}, "bias", type).to(first_gpu());

  tensor forward() const { return linear_forward(x, weight, bias, linear_activation::relu); }
  void require_right(const tensor& y) const {
    auto left = values_of(x), right = values_of(weight), added = values_of(bias);
    std::vector<exact_sum> expected(static_cast<std::size_t>(rows * 7));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (std::size_t k = 0; k < 5; ++k) expected[i].add(left[i / 7 * 5 + k] * right[i % 7 * 5 + k]);
      expected[i].add(added[i % 7]);
      expected[i].value = std::max(expected[i].value, 0.0);
    }
    require_close(y, expected);
  }
};

}  // namespace

TEST_CASE("a product whose bias cuBLASLt cannot add is computed without, and bias and relu follow in f32") {
  std::vector<described_product> asked;
  offered plain_alone([&](const described_product& product) {
    asked.push_back(product);
    return product.has_bias ? nothing() : all();
  });
  linear_layer linear{3};
  auto calls = the_fake_cublaslt().num_calls(matmul_call);
  linear.require_right(linear.forward());
  CHECK(the_fake_cublaslt().num_calls(matmul_call) == calls + 1);
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].to == dtype::bf16);
  CHECK(asked[1].to == dtype::f32);  // so that the sum with the bias is rounded once
}

TEST_CASE("a product that cuBLASLt does not support at all is computed by a kernel of the project") {
  offered none([](const auto&) { return nothing(); });
  auto calls = the_fake_cublaslt().num_calls(matmul_call);
  for (auto type : floating_types) {
    linear_layer linear{4, type};
    linear.require_right(linear.forward());
  }
  CHECK(the_fake_cublaslt().num_calls(matmul_call) == calls);
}

TEST_CASE("the implementation of a product is chosen once for its shape, dtypes and alignment") {
  offered none([](const auto&) { return nothing(); });
  linear_layer linear{5};
  auto first = linear.forward();
  auto asked = the_fake_cublaslt().num_calls(heuristic);
  offered everything([](const auto&) { return all(); });
  CHECK(same_bits(linear.forward(), first));
  CHECK(the_fake_cublaslt().num_calls(heuristic) == asked);
}

TEST_CASE("of cuBLASLt's candidates the first that works is taken") {
  offered second_works([](const auto&) {
    return std::vector{CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS};
  });
  linear_layer linear{6};
  auto calls = the_fake_cublaslt().num_calls(matmul_call);
  linear.require_right(linear.forward());
  CHECK(the_fake_cublaslt().num_calls(matmul_call) == calls + 1);
}

TEST_CASE("cuBLASLt's heuristics see how operands and bias are aligned") {
  std::vector<described_product> asked;
  offered everything([&](const described_product& product) {
    asked.push_back(product);
    return all();
  });
  linear_layer linear{7};
  auto biases = random_tensor({15}, "biases", dtype::bf16).to(first_gpu());
  linear.bias = biases.reshape({15, 1}).rows(1, 7).reshape({7});
  linear.require_right(linear.forward());
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].bias_alignment_bytes == 2);
  CHECK(asked[0].alignment_bytes == 256);
  CHECK(asked[0].shape.rows == 7);
}

TEST_CASE("a product that cuBLASLt refuses at the call is computed by the project's kernel, then and later") {
  linear_layer linear{8};
  auto& fake = the_fake_cublaslt();
  fake.fail_call(matmul_call, CUBLAS_STATUS_NOT_SUPPORTED);
  auto first = linear.forward();
  linear.require_right(first);
  auto asked = fake.num_calls(heuristic);
  CHECK(same_bits(linear.forward(), first));
  CHECK(fake.num_calls(heuristic) == asked);
}

TEST_CASE("a failing call of cuBLASLt names the product, leaks nothing, and is tried again") {
  linear_layer linear{9};
  auto& fake = the_fake_cublaslt();
  for (std::string_view function :
       {"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
        "cublasLtMatrixLayoutSetAttribute", "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"}) {
    CAPTURE(function);
    auto live = fake.num_live();
    fake.fail_call(function, CUBLAS_STATUS_ALLOC_FAILED);
    CHECK_THROWS_MATCHES(
        linear.forward(), cuda_error,
        MessageMatches(ContainsSubstring("cuBLASLt: ") &&
                       ContainsSubstring("in the product bf16 [9, 5] x [7, 5]^T to bf16, bias "
                                         "aligned to 256 bytes")));
    CHECK(fake.num_live() == live);
  }
  linear.require_right(linear.forward());
  fake.fail_call(matmul_call, CUBLAS_STATUS_EXECUTION_FAILED);
  CHECK_THROWS_AS(linear.forward(), cuda_error);
  linear.require_right(linear.forward());
}

TEST_CASE("more pairs of matrices than cuBLASLt counts are not given to cuBLASLt") {
  // Nothing is computed: a grid has as few blocks, and so the launch refuses, before memory is touched.
  auto gpu = first_gpu();
  auto memory = tensor::zeros({64}, dtype::f32, gpu);
  auto pairs = (std::int64_t{1} << 31) + 7;
  auto of = [&] { return tensor::wrap(nullptr, memory.bytes().data(), {pairs, 1, 1}, dtype::f32, gpu); };
  auto asked = the_fake_cublaslt().num_calls(heuristic);
  auto c = of();
  CHECK_THROWS_WITH(matmul_into(of(), of(), c, gradient_mode::assign), ContainsSubstring("2^31 - 1 blocks"));
  CHECK(the_fake_cublaslt().num_calls(heuristic) == asked);
}

TEST_CASE("a recorded product can be replayed after its plan is destroyed") {
  linear_layer linear{11};
  auto y = tensor::zeros({11, 7}, dtype::bf16, first_gpu());
  captured_step step(first_gpu(), [&] { y.copy_from(linear.forward()); });
  step.run();
  step.run();
  auto live = the_fake_cublaslt().num_live();
  auto weight = tensor::zeros({1, 5}, dtype::bf16, first_gpu());
  for (std::int64_t rows = 1000; rows < 1000 + 1030; ++rows)  // more than the plans that are kept
    linear_forward(tensor::zeros({rows, 5}, dtype::bf16, first_gpu()), weight, {});
  CHECK(the_fake_cublaslt().num_live() < live + 4 * 1030);
  y.copy_from(tensor::zeros({11, 7}, dtype::bf16, first_gpu()));
  step.run();
  linear.require_right(y);
}
