#include "troupe/ops/kernels/kernel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

using troupe::device;
using troupe::tensor;

namespace {

using entry = troupe::kernel<int(const tensor& x, int number)>;

int doubled(const tensor&, int number) { return 2 * number; }

}  // namespace

TEST_CASE("an entry with a function calls it", "[host]") {
  entry of = doubled;
  CHECK(of({}, 21) == 42);
}

TEST_CASE("an operation that a device lacks is refused with the operation's and the device's name",
          "[host]") {
  std::byte element{};
  auto on_gpu = tensor::wrap(nullptr, &element, {1}, troupe::dtype::u8, {device::kind::cuda, 3});
  entry nothing{"trace"};
  CHECK_THROWS_MATCHES(
      nothing(on_gpu, 1), std::invalid_argument,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("[trace] expected tensors in the "
                                                                         "memory of the CPU") &&
                                      Catch::Matchers::ContainsSubstring("cuda:3")));
}
