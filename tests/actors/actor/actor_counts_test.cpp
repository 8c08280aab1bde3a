#include "troupe/actor/actor_counts.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "troupe/actor/actor_counters.hpp"
#include "troupe/actor/handler_times.hpp"

using namespace troupe;
using namespace troupe::actors::actor;

TEST_CASE("times fall into buckets whose bounds double from 1.024 us to 17.2 s") {
  CHECK(handler_bucket(-1) == 0);
  CHECK(handler_bucket(1023) == 0);
  CHECK(handler_bucket(1024) == 1);
  CHECK(handler_bucket(2047) == 1);
  CHECK(handler_bucket(2048) == 2);
  CHECK(handler_bucket((std::int64_t{1} << 34) - 1) == num_handler_buckets - 2);
  CHECK(handler_bucket(std::int64_t{1} << 34) == num_handler_buckets - 1);
  CHECK(handler_bucket(INT64_MAX) == num_handler_buckets - 1);
  CHECK(handler_bucket_bound_s(0) == Catch::Approx(1.024e-6));
  for (std::size_t bucket = 0; bucket + 1 < num_handler_buckets; ++bucket) {
    auto bound_ns = static_cast<std::int64_t>(handler_bucket_bound_s(bucket) * 1e9 + 0.5);
    CHECK(handler_bucket(bound_ns - 1) == bucket);
    CHECK(handler_bucket(bound_ns) == bucket + 1);
  }
}

TEST_CASE("quantiles are between the bounds of their bucket") {
  CHECK(handler_quantile_s({}, 0.5) == 0);
  CHECK(handler_quantile_s({0, 0}, 0.5) == 0);
  // 98 below 1.024 us, 2 from 1.05 ms to 2.1 ms
  std::vector<std::uint64_t> counts(12);
  counts[0] = 98;
  counts[11] = 2;
  CHECK(handler_quantile_s(counts, 0.5) == Catch::Approx(1.024e-6 * 50 / 98));
  CHECK(handler_quantile_s(counts, 0.99) == Catch::Approx(1.572864e-3));
  CHECK(handler_quantile_s(counts, 1) == Catch::Approx(2.097152e-3));
  // the last bucket has no end
  CHECK(handler_quantile_s(std::vector<std::uint64_t>(num_handler_buckets, 1), 1) ==
        Catch::Approx(17.179869184));
}

TEST_CASE("what earlier starts of an actor have done is added, what waited for them is not") {
  actor_counts now{3, 0.5, 0.25, 10, 20, 30, 40, 1.5, {1, 2}};
  add_totals(now, {7, 9, 9, 1, 2, 3, 4, 0.5, {1, 1, 5}});
  CHECK(now == actor_counts{3, 0.5, 0.25, 11, 22, 33, 44, 2, {2, 3, 5}});
}

TEST_CASE("counters tell how many messages wait and what was done") {
  actor_counters counters;
  CHECK(counters.read() == actor_counts());
  for (int i = 0; i < 3; ++i) counters.enqueued();
  counters.taken();
  counters.handled(1500);
  counters.taken();
  counters.put_back();
  counters.sent();
  counters.frame_sent(100);
  counters.frame_received(50);
  auto read = counters.read();
  CHECK(read.mailbox_depth == 2);
  CHECK(read.oldest_s >= 0);
  CHECK(read.messages_in == 1);
  CHECK(read.messages_out == 1);
  CHECK(read.frame_bytes_out == 100);
  CHECK(read.frame_bytes_in == 50);
  CHECK(read.handler_s == 1.5e-6);
  CHECK(read.handler_times == std::vector<std::uint64_t>{0, 1});
  CHECK(read.running_s == 0);
  counters.close();
  CHECK(counters.read().mailbox_depth == 0);
  CHECK(counters.read().oldest_s == 0);
}

TEST_CASE("a handler runs from its beginning until it is over, not when another thread has begun the next") {
  actor_counters counters;
  auto begun = steady_ns() - 2'000'000'000;
  counters.running_since(begun);
  CHECK(counters.read().running_s >= 2);
  counters.running_since(begun + 1);
  counters.stopped_running(begun);
  CHECK(counters.read().running_s > 1);
  counters.stopped_running(begun + 1);
  CHECK(counters.read().running_s == 0);
}
