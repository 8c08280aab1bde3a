#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cctype>

#include "runtime/schedule/drawn_plans.hpp"
#include "runtime/schedule/plan_runner.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/text/plan_text.hpp"

// Single faults in plans that are sound otherwise: what check_plan says must name the fault.
namespace {

using troupe::action;
using troupe::action_kind;
using troupe::plan;
using troupe::testing::drawn_below;
using troupe::testing::drawn_index;
using findings = std::vector<std::string>;

/// Does `text` hold `name`, and not as a part of another name ("1F1" in "11F1" or "1F12")?
bool names(const std::string& text, const std::string& name) {
  auto is_part = [&text](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
    if ((at == 0 || !is_part(at - 1)) && !is_part(at + name.size())) return true;
  return false;
}

/// Some backwards as I and W, one behind the other.
void split_backwards(plan& changed, std::mt19937& random) {
  for (auto& device : changed.devices)
    for (std::size_t at = 0; at < device.size(); ++at) {
      auto [stage, kind, microbatch, axis] = device[at];
      if (kind != action_kind::backward || drawn_below(3, random) > 0) continue;
      device[at].kind = action_kind::input_gradient;
      device.insert(device.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                    {stage, action_kind::weight_gradient, microbatch});
    }
}

/// An action of a plan.
struct place {
  std::size_t device = 0;
  std::size_t at = 0;
};

place drawn_place(const plan& drawn, std::mt19937& random) {
  auto device = drawn_index(drawn.devices.size(), random);
  return {device, drawn_index(drawn.devices[device].size(), random)};
}

/// Calls `body(sound plan, place of one of its actions, random)` for many drawn plans.
template <class Body>
void for_many_plans(Body body) {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    auto drawn = troupe::make_plan(troupe::testing::drawn_options(6, 5, random));
    split_backwards(drawn, random);
    CAPTURE(seed, troupe::schedule::plan_text(drawn));
    REQUIRE(troupe::schedule::check_plan(drawn) == findings{});
    auto where = drawn_place(drawn, random);
    body(drawn, where, random);
  }
}

std::ptrdiff_t offset(std::size_t at) { return static_cast<std::ptrdiff_t>(at); }

}  // namespace

TEST_CASE("of any plan a missing action is named") {
  for_many_plans([](plan& changed, place where, std::mt19937&) {
    auto& device = changed.devices[where.device];
    auto op = device[where.at];
    device.erase(device.begin() + offset(where.at));
    auto found = troupe::schedule::check_plan(changed);
    CAPTURE(to_string(op), found);
    REQUIRE(std::ranges::count(found, to_string(op) + " is missing") == 1);
  });
}

TEST_CASE("of any plan an action that is there twice is named") {
  for_many_plans([](plan& changed, place where, std::mt19937& random) {
    auto& device = changed.devices[where.device];
    auto op = device[where.at];
    device.insert(device.begin() + offset(drawn_index(device.size() + 1, random)), op);
    auto found = troupe::schedule::check_plan(changed);
    CAPTURE(to_string(op), found);
    REQUIRE(std::ranges::any_of(
        found, [&op](const auto& each) { return names(each, to_string(op)) && names(each, "times"); }));
  });
}

TEST_CASE("of any plan an action on another device is named with the device") {
  for_many_plans([](plan& changed, place where, std::mt19937& random) {
    if (changed.num_devices() == 1) return;
    auto& device = changed.devices[where.device];
    auto op = device[where.at];
    device.erase(device.begin() + offset(where.at));
    auto to = (where.device + 1 + drawn_index(changed.devices.size() - 1, random)) % changed.devices.size();
    auto& other = changed.devices[to];
    other.insert(other.begin() + offset(drawn_index(other.size() + 1, random)), op);
    auto found = troupe::schedule::check_plan(changed);
    CAPTURE(to_string(op), found);
    REQUIRE(std::ranges::count(found, "device " + std::to_string(to) + " does " + to_string(op) +
                                          ", but stage " + std::to_string(op.stage) + " is on device " +
                                          std::to_string(where.device)) == 1);
  });
}

TEST_CASE("two actions swapped are sound or one of them is named in each finding") {
  int num_unsound = 0;
  for_many_plans([&num_unsound](plan& changed, place where, std::mt19937& random) {
    auto& device = changed.devices[where.device];
    auto other = drawn_index(device.size(), random);
    auto [first, second] = std::pair(device[where.at], device[other]);
    std::swap(device[where.at], device[other]);
    auto found = troupe::schedule::check_plan(changed);
    CAPTURE(to_string(first), to_string(second), found);
    REQUIRE(found.empty() == troupe::testing::plan_runner(changed).runs_soundly());
    auto names_one = [&](const std::string& each) {
      return names(each, to_string(first)) || names(each, to_string(second));
    };
    REQUIRE((found.empty() || std::ranges::any_of(found, names_one)));
    // What another stage's R waits for is the action before this stage's R: a swap can change which one that
    // is.
    for (const auto& each : found)
      if (!each.starts_with("deadlock: ") || changed.reductions.empty()) REQUIRE(names_one(each));
    num_unsound += !found.empty();
  });
  CHECK(num_unsound > 1000);
}

TEST_CASE("an optimizer's step that comes too early is named with each action that comes after it") {
  int num_moved = 0;
  for_many_plans([&num_moved](plan& changed, place where, std::mt19937& random) {
    auto& device = changed.devices[where.device];
    auto apply = std::ranges::find(device, action_kind::apply, &action::kind);
    if (apply == device.end() || changed.flush_every > 1) return;  // one of several may also come too late
    auto op = *apply;
    device.erase(apply);
    auto at = device.begin() + offset(drawn_index(device.size(), random));
    auto inserted = device.insert(at, op);
    std::vector<action> late;
    std::copy_if(inserted + 1, device.end(), std::back_inserter(late),
                 [&op](const action& each) { return each.stage == op.stage; });
    auto found = troupe::schedule::check_plan(changed);
    CAPTURE(to_string(op), found);
    REQUIRE(found.empty() == late.empty());
    for (const auto& each : late)
      REQUIRE(std::ranges::any_of(found, [&](const auto& sentence) {
        return names(sentence, to_string(each)) && names(sentence, to_string(op));
      }));
    num_moved += !late.empty();
  });
  CHECK(num_moved > 1000);
}

TEST_CASE("an edge that leads back is named") {
  for_many_plans([](plan& changed, place, std::mt19937& random) {
    auto from = drawn_below(changed.num_stages, random);
    troupe::schedule::edge added{from, 0, drawn_below(from + 1, random), 99};
    changed.edges.push_back(added);
    std::ranges::sort(changed.edges);
    auto found = troupe::schedule::check_plan(changed);
    CAPTURE(to_string(added), found);
    REQUIRE(found.size() == 1);
    REQUIRE(found[0].find(to_string(added)) != std::string::npos);
  });
}

/// Is the wait for a tensor or a gradient of `added` a part of the sentence?
bool tells_wait_for(const troupe::schedule::edge& added, int num_microbatches, const std::string& sentence) {
  auto holds = [&sentence](const action& waiting, const action& awaited) {
    return names(sentence, to_string(waiting) + " waits for " + to_string(awaited));
  };
  using enum action_kind;
  for (int microbatch = 0; microbatch < num_microbatches; ++microbatch) {
    if (holds({added.to, forward, microbatch}, {added.from, forward, microbatch})) return true;
    for (auto waiting : {backward, input_gradient})
      for (auto awaited : {backward, input_gradient})
        if (holds({added.from, waiting, microbatch}, {added.to, awaited, microbatch})) return true;
  }
  return false;
}

TEST_CASE("an edge that closes a circle of waits is a part of each circle that is told") {
  int num_circles = 0;
  for_many_plans([&num_circles](const plan& drawn, place, std::mt19937& random) {
    for (int i = 0; i < 5 && drawn.num_stages > 1; ++i) {
      auto changed = drawn;
      auto added = troupe::testing::add_edge(changed, random);
      auto found = troupe::schedule::check_plan(changed);
      CAPTURE(to_string(added), found);
      REQUIRE(found.empty() == troupe::testing::plan_runner(changed).runs_soundly());
      for (const auto& each : found) {
        REQUIRE(each.starts_with("deadlock: "));
        REQUIRE(tells_wait_for(added, changed.num_microbatches, each));
      }
      num_circles += !found.empty();
    }
  });
  CHECK(num_circles > 200);
}
