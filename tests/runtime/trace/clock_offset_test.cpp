#include "troupe/trace/clock_offset.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

using troupe::trace::clock_sample;

TEST_CASE("the offset of two clocks comes from the shortest round trip") {
  CHECK_FALSE(troupe::trace::estimate_offset({}));
  std::vector<clock_sample> samples = {
      {0, 1'000'900, 1000}, {5000, 1'005'050, 5100}, {9000, 1'009'001, 9900}};
  CHECK(troupe::trace::estimate_offset(samples) == troupe::trace::clock_offset{1'000'000, 50});
}

TEST_CASE("a reply before its request counts as no sample") {
  std::vector<clock_sample> samples = {{1000, 7, 900}};
  CHECK_FALSE(troupe::trace::estimate_offset(samples));
  samples.push_back({100, 150, 200});
  CHECK(troupe::trace::estimate_offset(samples) == troupe::trace::clock_offset{0, 50});
}

TEST_CASE("whatever the delays of either way, the offset is within its error") {
  std::mt19937_64 random(11);
  auto below = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % most); };
  for (int round = 0; round < 300; ++round) {
    auto offset = below(1'000'000'000) - 500'000'000;
    std::vector<clock_sample> samples;
    std::int64_t shortest = INT64_MAX;
    for (int i = 0; i < 8; ++i) {
      auto sent = below(1'000'000'000), there = below(1'000'000), back = below(1'000'000);
      samples.push_back({sent, sent + there + offset, sent + there + back});
      shortest = std::min(shortest, there + back);
    }
    auto found = troupe::trace::estimate_offset(samples).value();
    CHECK(std::abs(found.offset_ns - offset) <= found.error_ns);
    CHECK(found.error_ns <= shortest / 2 + 1);
  }
}

TEST_CASE("events of several processes are merged by corrected time") {
  auto at = [](std::int64_t time) { return troupe::trace::trace_event{.begin_ns = time, .end_ns = time}; };
  troupe::trace::process_events first{.rank = 0}, second{.rank = 1};
  first.threads = {{.name = "a", .events = {at(10), at(30)}}, {.name = "b", .events = {at(20)}}};
  second.threads = {{.name = "c", .events = {at(1005), at(1025)}}};
  auto merged = troupe::trace::merge_events({first, second}, {{1, -1000}});
  REQUIRE(merged.size() == 5);
  CHECK(merged[0] == troupe::trace::merged_event{1, 0, at(5)});
  CHECK(merged[1] == troupe::trace::merged_event{0, 0, at(10)});
  CHECK(merged[2] == troupe::trace::merged_event{0, 1, at(20)});
  CHECK(merged[3] == troupe::trace::merged_event{1, 0, at(25)});
  CHECK(merged[4] == troupe::trace::merged_event{0, 0, at(30)});
}
