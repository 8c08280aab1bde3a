#include "troupe/ops/threads.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <functional>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/linear.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/ops/reduction.hpp"

using troupe::tensor;
using troupe::testing::random_tensor;

namespace {

auto threads_of_this_process() {
  auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

/// Elements that are late, and remember which threads waited for them.
class late_elements : public troupe::awaited_elements {
 public:
  late_elements() { set_due(true); }
  std::vector<std::thread::id> brought_to() const { return brought_to_; }

 protected:
  /// Gives other threads the time to come, too.
  void bring() override {
    {
      std::lock_guard lock(mutex_);
      brought_to_.push_back(std::this_thread::get_id());
    }
    for (int i = 0; i < 2000; ++i) std::this_thread::yield();
    set_due(false);
  }

 private:
  std::mutex mutex_;
  std::vector<std::thread::id> brought_to_;
};

using operation_on = std::function<void(const tensor&)>;

}  // namespace

TEST_CASE("with one thread each, four devices make no helpers and the bits of one", "[host]") {
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
  auto before = threads_of_this_process();
  counted_before.count_down();
  computed.wait();
  CHECK(threads_of_this_process() == before);
  counted_after.count_down();
  for (auto& device : devices) device.join();
  for (const auto& result : results) CHECK(troupe::testing::same_bits(result, expected));
}

TEST_CASE("a number of threads is that of the calling thread, and 1 where it says nothing", "[host]") {
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

TEST_CASE("who calls an operation waits for its elements, not the threads that share it", "[host]") {
  auto x = random_tensor({512, 512}, "x");
  std::vector<operation_on> all{[&](const tensor& late) { troupe::add(x, late); },
                                [&](const tensor& late) { troupe::less(late, x); },
                                [&](const tensor& late) { troupe::multiply(late, 2); },
                                [&](const tensor& late) { troupe::axpy(0.5F, late, x.clone()); },
                                [&](const tensor& late) { troupe::cast(late, troupe::dtype::bf16); },
                                [&](const tensor& late) { troupe::transpose(late); },
                                [&](const tensor& late) { troupe::sum(late, {.axes = {0}}); },
                                [&](const tensor& late) { troupe::global_norm(std::span(&late, 1)); },
                                [&](const tensor& late) { troupe::linear_forward(x, late, {}); }};
  std::thread([&] {
    troupe::set_num_threads(3);
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO("operation " << i);
      auto what = std::make_shared<late_elements>();
      all[i](x.awaiting(what));
      CHECK(what->brought_to() == std::vector{std::this_thread::get_id()});
    }
  }).join();
}
