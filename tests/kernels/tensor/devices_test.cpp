#include "troupe/tensor/devices.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/devices.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/memory.hpp"
#include "troupe/tensor/tensor.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::device;
using troupe::tensor;

namespace {

template <class Use>
void require_refused(const Use& use, const std::string& text) {
  REQUIRE_THROWS_MATCHES(use(), troupe::bad_input, Catch::Matchers::MessageMatches(ContainsSubstring(text)));
}

}  // namespace

TEST_CASE("every request for a missing GPU is refused, and the CPU never replaces it") {
  device far{device::kind::cuda, 99};
  std::string text = "cuda:99 is not there";
  require_refused([&] { return tensor::zeros({3}, troupe::dtype::f32, far); }, text);
  require_refused([&] { return tensor::zeros({3}).to(far); }, text);
  require_refused([&] { return troupe::memory_of(far); }, text);
  require_refused([&] { return troupe::device_name(far); }, text);
  require_refused([&] { troupe::synchronize(far); }, text);
}

TEST_CASE("a missing GPU is refused with what is missing") {
  device wanted{device::kind::cuda, troupe::num_cuda_devices()};
  auto ask = [&] { troupe::require_device(wanted); };
  if (troupe::cuda_version().empty())
    require_refused(ask, "built without CUDA; install the CUDA Toolkit");
  else if (wanted.index == 0)
    require_refused(ask, "NVIDIA driver");
  else
    require_refused(ask, "this machine has " + std::to_string(wanted.index) + " GPU");
}

TEST_CASE("existing devices have names and wait for queued work") {
  for (auto where : troupe::testing::devices_here()) {
    CHECK_FALSE(troupe::device_name(where).empty());
    troupe::synchronize(where);
  }
  CHECK(troupe::device_name({}) == "CPU");
}

TEST_CASE("the CPU is one device") {
  require_refused([] { troupe::require_device({device::kind::cpu, 1}); }, "one CPU device");
}
