#include "troupe/collective/libraries/gloo/gloo_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <future>
#include <numeric>
#include <thread>

#include "runtime/collective/cases/collective_case.hpp"
#include "support/processes/spawn_ranks.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

bool is_built() {
  try {
    gloo_group_resources resources;
  } catch (const bad_input& refused) {
    if (std::string(refused.what()).find("libgloo-dev") == std::string::npos) throw;
    return false;
  }
  return true;
}

/// Runs `body` in `count` processes that have a group.
void with_group(int count, const std::function<void(members&, test_rank&)>& body,
                const std::vector<communicator_options>& by_rank = {}) {
  temp_folder folder;
  auto run = [&](test_rank& self) {
    auto options = by_rank.empty() ? communicator_options{} : by_rank[static_cast<std::size_t>(self.rank())];
    folder_store place(folder.path());
    gloo_group_resources resources;
    auto make_group = [&](const std::string& name, const std::vector<world_rank>& ranks) {
      auto member = std::ranges::find(ranks, self.rank()) - ranks.begin();
      return make_gloo_group({name, ranks, static_cast<int>(member)}, place, resources, options);
    };
    std::vector<world_rank> all_ranks(static_cast<std::size_t>(self.size()));
    std::iota(all_ranks.begin(), all_ranks.end(), 0);
    auto all = make_group("all", all_ranks);
    members given{*all, make_group, false};
    body(given, self);
  };
  spawn_ranks(count, run, std::chrono::seconds(500));
}

void run_cases(int count) {
  if (!is_built()) SKIP("Troupe was built without gloo");
  with_group(count, [](members& given, test_rank& self) {
    run_collective_cases(given);
    self.barrier(1000);
  });
}

/// What a call of this member ends with.
collective_error failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const collective_error& error) {
    return error;
  }
  throw std::runtime_error("the call succeeded");
}

}  // namespace

TEST_CASE("a gloo group of one process conforms to the backend contract") { run_cases(1); }
TEST_CASE("a gloo group of 2 processes conforms to the backend contract", "[many]") { run_cases(2); }
TEST_CASE("a gloo group of 3 processes conforms to the backend contract", "[many]") { run_cases(3); }

TEST_CASE("gloo names a killed process on all other members") {
  if (!is_built()) SKIP("Troupe was built without gloo");
  with_group(3, [](members& given, test_rank& self) {
    given.all.barrier().wait();
    if (self.rank() == 2) self.kill(2);
    auto x = tensor::zeros({100000});
    auto error = failure_of([&] { given.all.all_reduce(x).wait(); });
    expect(error.kind() == collective_failure::lost_member, error.what());
    expect(error.ranks() == std::vector<world_rank>{2}, error.what());
    expect(std::string(error.what()).find("all_reduce(sum, f32[100000])") != std::string::npos, error.what());
    self.post(1000);  // the other survivor may still ask
    self.wait_for(1 - self.rank(), 1000);
  });
}

TEST_CASE("gloo names a stopped process on all other members") {
  if (!is_built()) SKIP("Troupe was built without gloo");
  auto patience = GENERATE(std::array{5, 6}, std::array{6, 5});  // in seconds, of ranks 0 and 2
  with_group(
      3,
      [](members& given, test_rank& self) {
        given.all.barrier().wait();
        if (self.rank() == 1) {
          self.wait_for(0, 2);
          self.wait_for(2, 2);
          return;
        }
        auto x = tensor::zeros({100});
        auto error = failure_of([&] { given.all.all_reduce(x).wait(); });
        expect(error.kind() == collective_failure::timed_out, error.what());
        expect(error.ranks() == std::vector<world_rank>{1}, error.what());
        expect(failure_of([&] { given.all.barrier().wait(); }).kind() == collective_failure::timed_out,
               "later calls to fail alike");
        self.post(2);
      },
      {{.timeout = std::chrono::seconds(patience[0])}, {}, {.timeout = std::chrono::seconds(patience[1])}});
}

TEST_CASE("a cancelled call over gloo ends on all members, at any moment of a large transfer") {
  if (!is_built()) SKIP("Troupe was built without gloo");
  with_group(2, [](members& given, test_rank& self) {
    auto x = tensor::zeros({std::int64_t{1} << 24});
    for (int moment = 0; moment < 20; moment += 5) {
      auto group = given.make_group("moment " + std::to_string(moment), {0, 1});
      // Rank 1 may still be connecting when rank 0 has its group: a cancel then ends that.
      self.barrier(100 + moment);
      const call_options soon{.timeout = std::chrono::milliseconds(500)};  // gloo may not tell the sender
      auto running = self.rank() == 1 ? group->send(x, 0, soon) : group->receive(x, 1);
      if (self.rank() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(moment));
        running.cancel();
      }
      auto ends = [&] {
        try {
          running.wait();
        } catch (const collective_error& error) {
          // Rank 1 may have given up before rank 0 cancelled.
          return error.kind() == collective_failure::cancelled ||
                 error.kind() == collective_failure::timed_out || self.rank() == 1;
        }
        return true;
      };
      expect(ends(), "that it was cancelled");
      self.barrier(moment);
    }
  });
}

TEST_CASE("gloo names a differing call on all members") {
  if (!is_built()) SKIP("Troupe was built without gloo");
  with_group(3, [](members& given, test_rank& self) {
    auto x = tensor::zeros({self.rank() == 1 ? 11 : 10});
    auto error = failure_of([&] { given.all.all_reduce(x).wait(); });
    expect(error.kind() == collective_failure::mismatch, error.what());
    expect(std::string(error.what()).find("all_reduce(sum, f32[11])") != std::string::npos, error.what());
    self.barrier(1000);
  });
}

TEST_CASE("the formation of a gloo group that times out names the missing members") {
  if (!is_built()) SKIP("Troupe was built without gloo");
  temp_folder folder;
  folder_store place(folder.path());
  gloo_group_resources resources;
  auto error = failure_of([&] {
    make_gloo_group({"all", {4, 7}, 0}, place, resources, {.timeout = std::chrono::milliseconds(200)});
  });
  CHECK(error.kind() == collective_failure::timed_out);
  CHECK(error.ranks() == std::vector<world_rank>{7});
}

namespace {

/// The store of a process that stops as soon as it has told something, until `may_continue` is ready.
struct last_put final : store {
  last_put(store& into, std::atomic<bool>& flag, std::shared_future<void> until)
      : place(into), is_lost(flag), may_continue(std::move(until)) {}
  void put(const std::string& key, std::span<const std::byte> value) override {
    place.put(key, value);
    is_lost = true;
    may_continue.wait();
    throw collective_error(collective_failure::cancelled, "all", 0, {}, "dead");
  }
  std::optional<std::vector<std::byte>> get(const std::string&, std::chrono::milliseconds) override {
    return {};
  }
  store& place;
  std::atomic<bool>& is_lost;
  std::shared_future<void> may_continue;
};

}  // namespace

TEST_CASE("a wait in gloo for a member that published its address and died ends through the store") {
  if (!is_built()) SKIP("Troupe was built without gloo");
  temp_folder folder;
  folder_store place(folder.path());
  gloo_group_resources resources;
  for (const char* name : {"a", "b", "c", "d"}) {  // who connects to whom depends on gloo's ports
    std::atomic<bool> is_lost = false;
    std::promise<void> over;
    checked_store watched(place, [&] {
      if (is_lost) throw collective_error(collective_failure::lost_member, name, 0, {1}, "rank 1 was lost");
    });
    last_put dying(place, is_lost, over.get_future().share());
    auto of_dying = std::async(std::launch::async, [&] {
      return failure_of([&] { make_gloo_group({name, {0, 1}, 1}, dying, resources); });
    });
    // Where this member connects to the other, whose port still answers, the first call tells.
    auto error = failure_of([&] {
      auto group = make_gloo_group({name, {0, 1}, 0}, watched, resources);
      group->barrier({.timeout = std::chrono::milliseconds(200)}).wait();
    });
    over.set_value();
    CHECK(error.ranks() == std::vector<world_rank>{1});
    CHECK(of_dying.get().kind() == collective_failure::cancelled);
  }
}

TEST_CASE("gloo refuses a network interface that this host does not have") {
  if (!is_built()) SKIP("Troupe was built without gloo");
  CHECK_THROWS_WITH(gloo_group_resources("none0"), Catch::Matchers::ContainsSubstring("'none0'"));
}
