#include "troupe/schedule/simulation/memory_ledger.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

#include "troupe/schedule/text/plan_csv.hpp"

using namespace troupe;
using namespace troupe::schedule;

namespace {

memory_effect changing(memory_use use, std::int64_t bytes, std::int64_t peak = 0, std::int64_t working = 0) {
  memory_effect effect{.peak = peak, .working = working};
  of(use, effect.change) = bytes;
  return effect;
}

std::vector<device_ledger> ledger_of(const std::string& csv,
                                     std::map<std::string, std::vector<memory_effect>> effects,
                                     std::vector<memory_arrival> arriving = {}) {
  auto ran = simulate(read_plan_csv(csv, "plan.csv"), {});
  bytes_by_use first{};
  of(memory_use::parameters, first) = 1000;
  return memory_ledger(ran, {.effects_of = [&](const action& op) { return effects[to_string(op)]; },
                             .at_first = std::vector(ran.devices.size(), first),
                             .arriving = std::move(arriving)});
}

}  // namespace

TEST_CASE("a ledger says what is held after each action, and at most in it and ever") {
  auto found = ledger_of("0F0,0F1,0B0,0B1\n", {{"0F0", {changing(memory_use::activations, 10, 25, 15)}},
                                               {"0F1", {changing(memory_use::activations, 10, 10)}},
                                               {"0B0", {changing(memory_use::activations, -10, 7, 7)}},
                                               {"0B1", {changing(memory_use::activations, -10)}}});
  REQUIRE(found.size() == 1);
  std::vector<std::int64_t> held, peaks;
  for (const auto& entry : found[0].entries) {
    held.push_back(of(memory_use::activations, entry.held));
    peaks.push_back(entry.peak);
  }
  CHECK(held == std::vector<std::int64_t>{10, 20, 10, 0, 0});
  CHECK(peaks == std::vector<std::int64_t>{1025, 1020, 1027, 1010, 1000});
  CHECK(found[0].peak == 1027);
  CHECK(of(memory_use::activations, found[0].most) == 20);
  CHECK(of(memory_use::working, found[0].most) == 15);
  CHECK(of(memory_use::parameters, found[0].most) == 1000);
}

TEST_CASE("what arrives counts as messages until an action takes it over") {
  memory_effect takes{.peak = 3};
  of(memory_use::messages, takes.change) = -8;
  of(memory_use::activations, takes.change) = 8;
  // 1F0 runs from 1 to 2.
  auto found = ledger_of("0F0,0B0\n1F0,1B0\n", {{"1F0", {takes}}}, {{1, 1, 8}, {2.5, 1, 4}});
  const auto& entries = found[1].entries;
  CHECK(of(memory_use::messages, entries[0].held) == 0);
  CHECK(of(memory_use::activations, entries[0].held) == 8);
  CHECK(entries[0].peak == 1000 + 8 + 3);  // taken over, not held twice
  CHECK(of(memory_use::messages, entries[1].held) == 4);
  CHECK(of(memory_use::messages, found[1].most) == 8);
  CHECK(found[0].peak == 1000);
}

TEST_CASE("messages taken over before they count as arrived are no memory") {
  memory_effect takes;
  of(memory_use::messages, takes.change) = -8;
  of(memory_use::activations, takes.change) = 8;
  auto found = ledger_of("0F0,0B0\n1F0,1B0\n", {{"1F0", {takes}}}, {{3, 1, 8}});
  CHECK(of(memory_use::messages, found[1].entries[0].held) == -8);
  CHECK(found[1].entries[0].peak == 1008);
  CHECK(of(memory_use::messages, found[1].entries[1].held) == 0);
  CHECK(found[1].peak == 1008);
}

TEST_CASE("parameters that are sharded are held whole between U and S only") {
  auto found = ledger_of("0U,0F0,0S,0U,0B0,0S\n", {{"0U", {changing(memory_use::parameters, 500, 500)}},
                                                   {"0S", {changing(memory_use::parameters, -500)}},
                                                   {"0B0", {changing(memory_use::gradients, 100, 100)}}});
  std::vector<std::int64_t> held;
  for (const auto& entry : found[0].entries) held.push_back(of(memory_use::parameters, entry.held));
  CHECK(held == std::vector<std::int64_t>{1500, 1500, 1000, 1500, 1500, 1000, 1000});
  CHECK(found[0].peak == 1600);
}

TEST_CASE("a ledger without what each device holds at first is refused") {
  auto ran = simulate(read_plan_csv("0F0,0B0\n", "plan.csv"), {});
  CHECK_THROWS_AS(memory_ledger(ran, {}), std::invalid_argument);
}
