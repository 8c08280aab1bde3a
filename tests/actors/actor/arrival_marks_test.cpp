#include "troupe/actor/arrival_marks.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

using namespace troupe;
using namespace troupe::actors::actor;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// A mailbox whose messages come and are taken at given times.
struct timed_mailbox {
  void put(std::int64_t now_ns) {
    if (marks.is_due(now_ns, depth() == 0)) marks.mark(num_arrived, num_taken, now_ns);
    arrivals.push_back(now_ns);
    ++num_arrived;
  }
  std::uint64_t depth() const { return num_arrived - num_taken; }
  /// By how much the oldest message seems older than it is.
  std::int64_t error_ns() const { return arrivals.at(num_taken) - marks.arrival_ns(num_taken); }

  arrival_marks marks;
  std::atomic<std::uint64_t> num_arrived = 0;
  std::uint64_t num_taken = 0;
  std::vector<std::int64_t> arrivals;
};

}  // namespace

TEST_CASE("the first message after a pause has its own time") {
  timed_mailbox box;
  CHECK(box.marks.arrival_ns(0) == 0);
  for (std::int64_t now : {5 * ms, 100 * ms, 1000 * ms}) {
    box.put(now);
    CHECK(box.error_ns() == 0);
    ++box.num_taken;
  }
}

TEST_CASE("a message seems at most 10 ms older than it is while few wait") {
  timed_mailbox box;
  for (std::int64_t now = 0; now < 2000 * ms; now += ms / 4) {
    box.put(now);
    while (box.depth() > 400) ++box.num_taken;  // each waits for 100 ms
    CHECK(box.error_ns() >= 0);
    CHECK(box.error_ns() < arrival_marks::shortest_interval_ns);
  }
}

TEST_CASE("the age of the oldest message is right within a fifteenth however long nobody takes any") {
  timed_mailbox box;
  ++box.num_taken;  // the first one is being handled
  box.put(0);
  for (std::int64_t now = ms; now < 100'000 * ms; now += 5 * ms) {
    box.put(now);
    auto age = now - box.arrivals.at(box.num_taken);
    CHECK(box.error_ns() >= 0);
    CHECK(box.error_ns() <= std::max(arrival_marks::shortest_interval_ns, age / 15));
  }
}

TEST_CASE("a mailbox that was full for long is timed to 10 ms again after it was empty") {
  timed_mailbox box;
  for (std::int64_t now = 0; now < 100'000 * ms; now += 5 * ms) box.put(now);
  box.num_taken = box.num_arrived;
  for (std::int64_t now = 200'000 * ms; now < 201'000 * ms; now += 5 * ms) {
    box.put(now);
    CHECK(box.error_ns() < arrival_marks::shortest_interval_ns);
    box.num_taken += box.depth() > 10 ? 1 : 0;
  }
}

TEST_CASE("messages that come and go in drawn bursts never seem younger than they are") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::minstd_rand random(seed);
    timed_mailbox box;
    std::int64_t now = 0, oldest_age = 0;
    for (int i = 0; i < 5000; ++i) {
      now += static_cast<std::int64_t>(random() % 20) * ms;
      for (auto more = random() % 4; more > 0; --more) box.put(now);
      if (box.depth() > 0) oldest_age = std::max(oldest_age, now - box.arrivals.at(box.num_taken));
      box.num_taken += std::min<std::uint64_t>(box.depth(), random() % (seed % 2 == 0 ? 4 : 3));
      if (box.depth() == 0) {
        oldest_age = 0;
        continue;
      }
      REQUIRE(box.error_ns() >= 0);
      // What waited for long before made it less exact.
      // Pauses of up to 19 ms count with the shortest interval: three times the error without them.
      REQUIRE(box.error_ns() <= std::max(3 * arrival_marks::shortest_interval_ns, oldest_age / 5));
    }
  }
}
