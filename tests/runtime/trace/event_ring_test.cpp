#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <thread>

#include "troupe/trace/trace.hpp"

namespace {

/// An event whose every field follows from `number`, so that a torn one shows.
troupe::trace::trace_event numbered(std::uint64_t number) {
  auto small = static_cast<std::int32_t>(number % 1000);
  return {.begin_ns = static_cast<std::int64_t>(number),
          .end_ns = static_cast<std::int64_t>(3 * number),
          .generation = 5 * number,
          .step = 7 * number,
          .stage = small - 1,
          .microbatch = -small,
          .kind = static_cast<troupe::trace::trace_kind>(number % 13),
          .detail = static_cast<std::uint8_t>(number),
          .peer = static_cast<std::int16_t>(small - 500),
          .port = static_cast<std::uint16_t>(3 * number),
          .call = static_cast<std::uint16_t>(5 * number),
          .name = static_cast<std::uint16_t>(7 * number),
          .bytes = 11 * number};
}

bool is_numbered(const troupe::trace::trace_event& event) {
  return event == numbered(static_cast<std::uint64_t>(event.begin_ns));
}

/// Whole events with ascending numbers and no gap.
bool is_whole(const std::vector<troupe::trace::trace_event>& events) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!is_numbered(events[i])) return false;
    if (i > 0 && events[i].begin_ns != events[i - 1].begin_ns + 1) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a ring returns the recorded events, oldest first") {
  troupe::trace::event_ring ring("device 0", 8);
  CHECK(ring.thread_name() == "device 0");
  CHECK(ring.snapshot().empty());
  for (std::uint64_t i = 0; i < 5; ++i) ring.record(numbered(i));
  auto events = ring.snapshot();
  REQUIRE(events.size() == 5);
  CHECK(events.front().begin_ns == 0);
  CHECK(is_whole(events));
  CHECK(ring.num_recorded() == 5);
}

TEST_CASE("a full ring keeps the newest events") {
  for (std::size_t capacity : {1, 2, 3, 8}) {
    troupe::trace::event_ring ring("", capacity);
    for (std::uint64_t i = 0; i < 29; ++i) ring.record(numbered(i));
    auto events = ring.snapshot();
    REQUIRE(events.size() == capacity);
    CHECK(events.back().begin_ns == 28);
    CHECK(is_whole(events));
    CHECK(ring.num_recorded() == 29);
  }
}

TEST_CASE("extreme values survive") {
  troupe::trace::event_ring ring("", 1);
  troupe::trace::trace_event event{.begin_ns = INT64_MIN,
                                   .end_ns = INT64_MAX,
                                   .generation = UINT64_MAX,
                                   .step = UINT64_MAX - 1,
                                   .stage = INT32_MIN,
                                   .microbatch = INT32_MAX,
                                   .kind = troupe::trace::trace_kind::actor_restarted,
                                   .detail = UINT8_MAX,
                                   .peer = INT16_MIN,
                                   .port = UINT16_MAX,
                                   .call = UINT16_MAX - 1,
                                   .name = UINT16_MAX - 2,
                                   .bytes = (std::uint64_t{1} << 48) - 1};
  ring.record(event);
  CHECK(ring.snapshot().at(0) == event);
  auto larger = event;
  larger.bytes = UINT64_MAX;
  ring.record(larger);
  CHECK(ring.snapshot().at(0) == event);
}

TEST_CASE("a ring that keeps nothing takes events") {
  troupe::trace::event_ring ring;
  ring.record(numbered(3));
  CHECK(ring.num_recorded() == 0);
  CHECK(ring.snapshot().empty());
}

TEST_CASE("a ring without room is refused") {
  CHECK_THROWS_AS(troupe::trace::event_ring("", 0), std::invalid_argument);
}

TEST_CASE("a concurrent reader gets complete events without gaps") {
  troupe::trace::event_ring ring("", 16);
  std::atomic<bool> reading = true;
  std::jthread writer([&] {
    for (std::uint64_t i = 0; reading; ++i) ring.record(numbered(i));
  });
  std::int64_t newest = -1;
  std::size_t num_read = 0;
  while (num_read < 500'000 || newest < 100'000) {
    auto events = ring.snapshot();
    if (events.empty()) continue;
    if (!is_whole(events) || events.back().begin_ns < newest || events.size() > 16) {
      FAIL_CHECK("torn, stale or too many events after " << newest);
      break;
    }
    newest = events.back().begin_ns;
    num_read += events.size();
  }
  reading = false;
}
