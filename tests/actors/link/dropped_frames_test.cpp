#include "troupe/link/dropped_frames.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::link;

TEST_CASE("a report of dropped frames names each counter that has changed, and by how much") {
  dropped_frames dropped;
  CHECK_FALSE(dropped.next({}, {}));
  gate_statistics gate;
  gate.old_generation = 4;
  gate.late_replies = 1;
  transport::transport_statistics transport;
  transport.stale_frames = 2;
  transport.ended_generation = 3;
  transport.tensors_sent = 7;
  auto first = dropped.next(gate, transport);
  REQUIRE(first);
  CHECK(first->text == "stale_frames=2 ended_generation=3 old_generation=4 late_replies=1");
  CHECK_FALSE(first->is_foreign);
  CHECK_FALSE(dropped.next(gate, transport));
  gate.old_generation = 6;
  gate.old_incarnation = 1;
  gate.unknown_actor = 3;
  auto second = dropped.next(gate, transport);
  REQUIRE(second);
  CHECK(second->text == "old_generation=2 old_incarnation=1 unknown_actor=3");
  CHECK_FALSE(second->is_foreign);
}

TEST_CASE("frames that no process of the job sends are reported as foreign") {
  SECTION("forged or damaged") {
    transport::transport_statistics transport;
    transport.bad_frames = 5;
    auto report = dropped_frames().next({}, transport);
    REQUIRE(report);
    CHECK(report->text == "bad_frames=5");
    CHECK(report->is_foreign);
  }
  SECTION("from a rank that is no member") {
    gate_statistics gate;
    gate.unknown_sender = 1;
    auto report = dropped_frames().next(gate, {});
    REQUIRE(report);
    CHECK(report->text == "unknown_sender=1");
    CHECK(report->is_foreign);
  }
}
