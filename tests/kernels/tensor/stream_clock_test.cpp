#include "troupe/tensor/async/stream_clock.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>

#include "support/devices.hpp"
#include "troupe/tensor/tensor.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

std::int64_t host_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

TEST_CASE("points of a device's work have the times at which it comes to them") {
  auto where = device_under_test();
  stream_clock clock(where);
  auto values = tensor::zeros({100'000}, dtype::f32, where);
  auto queued_ns = host_ns();
  auto before = clock.now();
  values.copy_from(tensor::full({100'000}, 1));
  auto after = clock.now();
  clock.wait_for(after);
  CHECK(clock.is_past(before));
  CHECK(clock.is_past(after));
  CHECK(clock.ns_of(before) < clock.ns_of(after));
  // The GPU's clock is compared as late, never as early.
  CHECK(clock.ns_of(after) > queued_ns);
}

TEST_CASE("a point that was never made is past, at the beginning of time") {
  stream_clock clock(device_under_test());
  CHECK(clock.is_past({}));
  CHECK(clock.ns_of({}) == 0);
}
