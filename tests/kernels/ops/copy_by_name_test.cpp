#include "troupe/ops/copy_by_name.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/ops/convert.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;
using troupe::copy_by_name;
using troupe::dtype;
using troupe::named_tensor;
using troupe::tensor;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

TEST_CASE("tensors are copied to those of the same names, in any order, and 16-bit floats widen") {
  std::vector<named_tensor> own = {{"a", tensor::zeros({3})}, {"b", tensor::zeros({2, 2})}};
  auto a = random_tensor({3}, "a"), b = cast(random_tensor({2, 2}, "b"), dtype::bf16);
  auto unmatched = copy_by_name(own, {{"b", b}, {"a", a}});
  CHECK(same_bits(own[0].value, a));
  CHECK(same_bits(own[1].value, cast(b, dtype::f32)));
  CHECK(unmatched.missing.empty());
  CHECK(unmatched.unexpected.empty());
}

TEST_CASE("all tensors that do not fit are named at once, and nothing is copied") {
  std::vector<named_tensor> own = {
      {"a", tensor::zeros({3})}, {"b", tensor::zeros({2})}, {"c", tensor::zeros({2}, dtype::i64)}};
  auto x = random_tensor({3}, "x");
  CHECK_THROWS_WITH(
      copy_by_name(own, {{"a", x}, {"a", x}, {"c", tensor::zeros({2})}, {"d", x}}),
      Equals("cannot load the state: there twice: a; of another kind: c is f32[2], expected i64[2]; "
             "missing tensor b; unknown tensor d"));
  CHECK(same_bits(own[0].value, tensor::zeros({3})));
  std::vector<named_tensor> many;
  for (int i = 0; i < 20; ++i) many.push_back({std::to_string(i), x});
  CHECK_THROWS_WITH(copy_by_name({}, many), ContainsSubstring("7 and 12 more"));
}

TEST_CASE("tensors that only one side has are reported and unchanged, if requested") {
  std::vector<named_tensor> own = {{"a", tensor::zeros({3})}, {"b", tensor::full({2}, 5)}};
  auto a = random_tensor({3}, "a");
  auto unmatched = copy_by_name(own, {{"num_batches_tracked", tensor::zeros({}, dtype::i64)}, {"a", a}},
                                {.strict = false});
  CHECK(unmatched.missing == std::vector<std::string>{"b"});
  CHECK(unmatched.unexpected == std::vector<std::string>{"num_batches_tracked"});
  CHECK(same_bits(own[0].value, a));
  CHECK(same_bits(own[1].value, tensor::full({2}, 5)));
  CHECK_THROWS_WITH(copy_by_name(own, {{"a", tensor::zeros({4})}}, {.strict = false}),
                    ContainsSubstring("a is f32[4], expected f32[3]"));
}
