#include "bench/data_parallel/throttled_backend.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <thread>

#include "troupe/collective/shm/local_group.hpp"

using namespace troupe;

TEST_CASE("a slow link moves the least that a collective must send") {
  auto bytes = [](collective::collective_kind kind) {
    return link_bytes({.kind = kind, .type = dtype::f32, .count = 100}, 4);
  };
  CHECK(bytes(collective::collective_kind::all_reduce) == 600);
  CHECK(bytes(collective::collective_kind::all_gather) == 300);
  CHECK(bytes(collective::collective_kind::reduce_scatter) == 300);
  CHECK(bytes(collective::collective_kind::broadcast) == 400);
  CHECK(bytes(collective::collective_kind::send) == 400);
  CHECK(bytes(collective::collective_kind::barrier) == 0);
  CHECK(link_bytes({.kind = collective::collective_kind::broadcast, .count = 100}, 1) == 0);
}

TEST_CASE("calls over a slow link bring the same results, no sooner than the link can") {
  static constexpr double bytes_per_second = 4e6;
  auto members = collective::make_local_group(2, over_link(2, bytes_per_second));
  std::vector<float> sums(2);
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (auto& each : members)
    threads.emplace_back([&] {
      auto x = tensor::full({10000}, 1), y = tensor::full({10000}, 2);
      auto first = each->all_reduce(x), second = each->all_reduce(y);
      first.wait();
      second.wait();
      sums[static_cast<std::size_t>(each->rank())] = x.values<float>()[9999] + y.values<float>()[0];
    });
  for (auto& each : threads) each.join();
  CHECK(sums == std::vector<float>{6, 6});
  // 40,000 bytes each: what the link needs is a lower bound, however slow the machine is.
  std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  CHECK(passed.count() >= 2 * 40000 / bytes_per_second);
}

TEST_CASE("a link without bandwidth is refused") {
  CHECK_THROWS_AS(throttled_backend(nullptr, 2, 0), std::invalid_argument);
}
