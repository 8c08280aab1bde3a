#include "troupe/ops/threads.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/ops/linear.hpp"

using troupe::tensor;
using troupe::testing::random_tensor;

namespace {

auto num_threads_of_this_process() {
  auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

}  // namespace

TEST_CASE("four devices with one thread each start no further threads and give the bits of one device",
          "[host]") {
  auto x = random_tensor({64, 300}, "x"), weight = random_tensor({200, 300}, "weight");
  troupe::set_num_threads(1);
  auto expected = troupe::linear_forward(x, weight, {});
  std::vector<tensor> results(4);
  std::vector<std::thread> devices;
  std::latch started(4), counted_before(1), computed(4), counted_after(1);
  for (auto& result : results)
    devices.emplace_back([&] {
      troupe::set_num_threads(1);
      started.count_down();
      counted_before.wait();
      result = troupe::linear_forward(x, weight, {});
      computed.count_down();
      counted_after.wait();
    });
  started.wait();
  auto before = num_threads_of_this_process();
  counted_before.count_down();
  computed.wait();
  CHECK(num_threads_of_this_process() == before);
  counted_after.count_down();
  for (auto& device : devices) device.join();
  for (const auto& result : results) CHECK(troupe::testing::same_bits(result, expected));
}

TEST_CASE("the number of threads is set for each calling thread, and is 1 by default", "[host]") {
  troupe::set_num_threads(3);
  std::thread([] {
    CHECK(troupe::num_threads() == 1);
    troupe::set_num_threads(2);
    CHECK(troupe::num_threads() == 2);
  }).join();
  CHECK(troupe::num_threads() == 3);
  CHECK_THROWS_AS(troupe::set_num_threads(0), std::invalid_argument);
  CHECK_THROWS_AS(troupe::set_num_threads(-4), std::invalid_argument);
  CHECK(troupe::num_threads() == 3);
  troupe::set_num_threads(1);
}
