// What a supervisor tells an inspector, and what it does when its own one fails.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "one_process.hpp"

using namespace troupe;
using namespace troupe::actors::supervisor;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

const actors::messages::child_report* child_of(const actors::messages::process_report& report,
                                               child_role role) {
  for (const auto& one : report.children)
    if (one.id.role == role) return &one;
  return nullptr;
}

actors::messages::process_report asked(one_process& here, std::uint64_t generation) {
  here.request(generation, {actors::actor::actor_role::supervisor, 1},
               actors::messages::inspect_process{generation});
  return here.replies().back().get_as<actors::messages::process_report>(0);
}

/// Fails the inspector `times` times, when it has something to tell.
void fail_inspector(one_process& here, int times) {
  here.inspected->events()->on_append([left = times]() mutable {
    if (left-- > 0) throw std::runtime_error("cannot tell");
  });
}

}  // namespace

TEST_CASE("a supervisor tells what it has started, and where its devices are") {
  one_process here;
  here.begin();
  here.train(2);
  auto report = asked(here, 1);
  CHECK(report.rank == 1);
  CHECK(report.generation == 1);
  CHECK(report.phase == static_cast<std::uint8_t>(process_generation::phase::active));
  REQUIRE(report.devices.size() == 1);
  CHECK(report.devices[0].device == 1);
  REQUIRE(child_of(report, child_role::device));
  CHECK(child_of(report, child_role::device)->is_running);
  CHECK(child_of(report, child_role::device)->starts == 1);
  CHECK_FALSE(child_of(report, child_role::inspector));
}

TEST_CASE(
    "a supervisor keeps the job's history for an inspector that knows less, and learns what it does not") {
  one_process here;
  here.begin();
  cluster::recovery_report over;
  over.generation = 7;
  here.actors.send(here.supervisor, actors::messages::recovery_done{over});
  auto report = asked(here, 1);
  CHECK(report.history.num_recoveries == 1);
  CHECK(report.history.recoveries.empty());
  CHECK(report.history.started_ms > 0);
  actors::messages::past_recovery earlier;
  earlier.report.generation = 3;
  actors::messages::inspect_process question{1, 1, {5, {earlier}, 1}};
  here.request(1, {actors::actor::actor_role::supervisor, 1}, question);
  auto history = here.replies().back().get_as<actors::messages::process_report>(0).history;
  REQUIRE(history.recoveries.size() == 2);
  CHECK(history.recoveries[0].report.generation == 3);
  CHECK(history.recoveries[1].report.generation == 7);
  CHECK(history.started_ms == 5);
}

TEST_CASE("a supervisor tells the memory of its process") {
  one_process here;
  here.begin();
  here.train(2);
  auto memory = asked(here, 1).memory;
  CHECK(memory.resident > 0);
  CHECK(memory.peak_resident >= memory.resident);
  CHECK(memory.peak >= memory.current);
  CHECK(memory.current ==
        memory.parameters + memory.gradients + memory.optimizer + memory.activations + memory.other);
}

TEST_CASE("a supervisor tells where its devices compute, and what they hold") {
  one_process here;
  here.begin();
  here.train(2);
  auto held = asked(here, 1).device_memory;
  REQUIRE_FALSE(held.empty());
  for (const auto& each : held) {
    CHECK(each.place == "cpu");
    CHECK(each.peak >= each.held);
    CHECK(each.peak > 0);
    CHECK(each.limit == 0);
    CHECK(each.on_host == 0);
  }
}

TEST_CASE("children of a job that is over stay in the report") {
  one_process here;
  here.begin();
  here.define();
  auto report = asked(here, 1);
  REQUIRE(child_of(report, child_role::device));
  CHECK_FALSE(child_of(report, child_role::device)->is_running);
}

TEST_CASE("a supervisor tells what its children and it itself have counted, also of those that have ended") {
  one_process here;
  here.begin();
  here.train(2);
  auto report = asked(here, 1);
  CHECK(report.supervisor.messages_in > 0);
  CHECK(report.supervisor.messages_out > 0);
  auto device = child_of(report, child_role::device)->counts;
  CHECK(device.messages_in > 0);
  CHECK(device.mailbox_depth == 0);
  CHECK_FALSE(device.handler_times.empty());
  here.define();
  auto ended = *child_of(asked(here, 1), child_role::device);
  CHECK_FALSE(ended.is_running);
  CHECK(ended.counts.messages_in >= device.messages_in);
  CHECK(ended.counts.mailbox_depth == 0);
}

TEST_CASE("totals of a child are those of all its starts, and only its newest start has a mailbox") {
  child_ledger ledger;
  child_id loader{child_role::loader, 0};
  auto first = std::make_shared<actors::actor::actor_counters>(),
       second = std::make_shared<actors::actor::actor_counters>();
  for (auto* one : {first.get(), second.get()}) {
    one->enqueued();
    one->enqueued();
    one->taken();
    one->handled(1);
  }
  ledger.started(loader, first);
  CHECK(ledger.report()[0].counts.mailbox_depth == 1);
  first->close();
  ledger.ended(loader);
  CHECK(ledger.report()[0].counts.mailbox_depth == 0);
  ledger.started(loader, second);
  ledger.started({child_role::disk, 0}, nullptr);
  auto report = ledger.report();
  CHECK(report[0].starts == 2);
  CHECK(report[0].counts.messages_in == 2);
  CHECK(report[0].counts.handler_times == std::vector<std::uint64_t>{2});
  CHECK(report[0].counts.mailbox_depth == 1);
  CHECK(report[1].counts == actors::actor::actor_counts());
}

TEST_CASE("an inspector publishes what its own supervisor tells") {
  one_process here;
  here.inspect();
  here.begin();
  here.advance(1s);
  auto view = here.inspected->view();
  REQUIRE(view);
  REQUIRE(view->processes.contains(1));
  CHECK(child_of(view->processes.at(1).report, child_role::inspector)->is_running);
}

TEST_CASE("an inspector that fails is started again and disturbs nobody") {
  one_process here;
  here.inspect();
  fail_inspector(here, 1);
  here.begin();
  here.advance(2s);
  auto view = here.inspected->view();
  REQUIRE(view);
  CHECK(child_of(view->processes.at(1).report, child_role::inspector)->starts == 2);
  CHECK_THAT(child_of(view->processes.at(1).report, child_role::inspector)->reason,
             ContainsSubstring("cannot tell"));
  CHECK(here.members.requests.empty());
}

TEST_CASE("a job goes on without an inspector that fails again and again") {
  one_process here;
  here.inspect();
  fail_inspector(here, 1000);
  here.begin();
  for (int i = 0; i < 10; ++i) here.advance(1s);
  CHECK_THAT(here.logged(), ContainsSubstring("the job goes on without it"));
  CHECK(here.members.requests.empty());
  CHECK(here.members.failures.empty());
}
