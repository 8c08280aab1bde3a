#include "troupe/ops/kernels/kernel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

using troupe::device;
using troupe::tensor;

namespace {

/// Zeros, once they were waited for; counts how often.
class late_zeros : public troupe::awaited_elements {
 public:
  late_zeros() { set_due(true); }
  int num_brought = 0;

 protected:
  void bring() override {
    set_due(false);
    ++num_brought;
  }
};

struct slot {
  tensor weight, gradient;
};

using entry = troupe::kernel<int(const tensor& x, int number)>;

int doubled(const tensor&, int number) { return 2 * number; }

}  // namespace

TEST_CASE("an entry with a function calls it", "[host]") {
  entry of = doubled;
  CHECK(of({}, 21) == 42);
}

TEST_CASE("an operation that a device does not have is refused by its name and the device's", "[host]") {
  std::byte element{};
  auto on_gpu = tensor::wrap(nullptr, &element, {1}, troupe::dtype::u8, {device::kind::cuda, 3});
  entry nothing{"trace"};
  CHECK_THROWS_MATCHES(
      nothing(on_gpu, 1), std::invalid_argument,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("[trace] expected tensors in the "
                                                                         "memory of the CPU") &&
                                      Catch::Matchers::ContainsSubstring("cuda:3")));
}

TEST_CASE("an entry waits for its tensors before its function, which may read them on several threads") {
  late_zeros late;
  auto awaited = [&] {
    late.set_due(true);
    return tensor::zeros({2}).awaiting(
        std::shared_ptr<troupe::awaited_elements>(std::shared_ptr<void>(), &late));
  };
  auto one = awaited();
  troupe::kernel<int(const tensor&, const tensor&)> pair = [](const tensor&, const tensor&) { return 0; };
  pair({}, one);
  CHECK(late.num_brought == 1);
  std::vector several{tensor(), awaited()};
  troupe::kernel<int(std::span<const tensor>)> list = [](std::span<const tensor>) { return 0; };
  list(several);
  CHECK(late.num_brought == 2);
  std::vector slots{slot{}, slot{awaited(), {}}};
  troupe::kernel<int(std::span<const slot>)> step = [](std::span<const slot>) { return 0; };
  step(slots);
  CHECK(late.num_brought == 3);
  slots = {slot{{}, awaited()}};
  step(slots);
  CHECK(late.num_brought == 4);
}
