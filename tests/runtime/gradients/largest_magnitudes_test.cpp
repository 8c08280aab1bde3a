#include "troupe/gradients/largest_magnitudes.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "support/random_tensor.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/top_k.hpp"

using namespace troupe;
using namespace troupe::gradients;
using namespace troupe::testing;

namespace {

using places = std::vector<std::int32_t>;

places of_top_k(const tensor& x, std::int64_t k) {
  auto found = top_k(abs(x), k).indices;
  auto indices = found.values<std::int64_t>();
  places result(indices.begin(), indices.end());
  std::ranges::sort(result);
  return result;
}

}  // namespace

TEST_CASE("the largest magnitudes are those of top_k, in ascending order of places") {
  auto x = random_tensor({1000}, "x");
  auto coarse = tensor::empty({1000});
  for (std::size_t i = 0; i < 1000; ++i)
    coarse.values<float>()[i] = static_cast<float>(static_cast<int>(x.values<float>()[i] * 5));
  for (std::int64_t k : {0, 1, 2, 10, 499, 998, 999, 1000})
    for (const auto& each : {x, coarse, tensor::zeros({1000})}) {
      CAPTURE(k);
      CHECK(largest_magnitudes(each.values<float>(), static_cast<std::size_t>(k)) == of_top_k(each, k));
    }
}

TEST_CASE("non-finite values are larger than all numbers, and denormal numbers larger than zero") {
  auto nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x{1, -infinity, 0, 3e38F, nan, -1e-45F, -0.0F};
  CHECK(largest_magnitudes(x, 1) == places{4});
  CHECK(largest_magnitudes(x, 2) == places{1, 4});
  CHECK(largest_magnitudes(x, 3) == places{1, 3, 4});
  CHECK(largest_magnitudes(x, 5) == places{0, 1, 3, 4, 5});
  CHECK(largest_magnitudes(x, 6) == places{0, 1, 2, 3, 4, 5});
  CHECK(largest_magnitudes(std::vector<float>{}, 0).empty());
}
