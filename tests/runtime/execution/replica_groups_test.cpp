#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "troupe/collective/shm/local_group.hpp"
#include "troupe/execution/replicas/replica_groups.hpp"

using namespace troupe;
using namespace troupe::execution;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Groups of this process alone, whatever their ranks; and what was asked for.
struct made_groups {
  std::vector<std::string> names;
  std::vector<std::vector<int>> ranks;
  group_maker maker() {
    return [this](const wanted_group& wanted) {
      names.push_back(std::to_string(wanted.generation) + '/' + wanted.name);
      ranks.emplace_back(wanted.ranks.begin(), wanted.ranks.end());
      std::vector<world_rank> alone{wanted.ranks.front()};
      return std::shared_ptr<communicator>(std::move(
          collective::make_local_group(alone, {.on_call_end = wanted.on_call_end}, wanted.name).front()));
    };
  }
};

const replica_group& found_in(replica_groups& groups, int stage) {
  while (true)
    if (const auto* found = groups.wait_for({stage}, 10ms)) return *found;
}

void ignore(const std::exception&) {}

}  // namespace

TEST_CASE("groups are made in the order of stages and slices, of the ranks that host the replicas") {
  made_groups made;
  replica_groups groups(7, 2, {{{4}, {3, 1, 3}}, {{2, 1}, {5, 6}}, {{2}, {0, 9}}}, made.maker(), ignore);
  CHECK(groups.has({2}));
  CHECK_FALSE(groups.has({3}));
  const auto& of_four = found_in(groups, 4);
  CHECK(made.names == std::vector<std::string>{"7/gradients of stage 2 of job 2",
                                               "7/gradients of stage 2 slice 1 of job 2",
                                               "7/gradients of stage 4 of job 2"});
  CHECK(made.ranks == std::vector<std::vector<int>>{{0, 9}, {5, 6}, {1, 3}});
  CHECK(of_four.replicas_of(0) == std::vector<int>{1});
  CHECK(of_four.replicas_of(1) == std::vector<int>{0, 2});
  CHECK(of_four.replicas_with(2) == std::vector<int>{0, 2});
}

TEST_CASE("who listens is told of each call that ends, until the groups end") {
  made_groups made;
  replica_groups groups(1, 0, {{{0}, {0, 1}}}, made.maker(), ignore);
  std::counting_semaphore<> told(0);
  groups.listen({0}, [&told] { told.release(); });
  auto calls = found_in(groups, 0).calls;
  auto x = tensor::full({4}, 1);
  for (int i = 0; i < 3; ++i) {
    auto call = calls->all_reduce(x);
    told.acquire();
    CHECK(call.is_done());
  }
  groups.end();
  CHECK_THROWS_AS(calls->all_reduce(x).wait(), collective_error);
  CHECK_FALSE(told.try_acquire());
}

TEST_CASE("a group that cannot be made is reported with the cause, and those after it are not made") {
  std::string reported;
  std::binary_semaphore has_reported(0);
  int num_tried = 0;
  {
    replica_groups groups(
        1, 0, {{{0}, {0, 1}}, {{1}, {0, 1}}},
        [&](const wanted_group& wanted) -> std::shared_ptr<communicator> {
          ++num_tried;
          throw std::runtime_error(wanted.name + ": no such interface");
        },
        [&](const std::exception& cause) {
          reported = cause.what();
          has_reported.release();
        });
    has_reported.acquire();
    CHECK(groups.wait_for({0}, 1ms) == nullptr);
  }
  CHECK_THAT(reported, ContainsSubstring("gradients of stage 0 of job 0: no such interface"));
  CHECK(num_tried == 1);
}

TEST_CASE(
    "groups that end, or are destroyed, while one is made end the wait for others, and report nothing") {
  bool is_destroyed = GENERATE(false, true);
  CAPTURE(is_destroyed);
  std::binary_semaphore begun(0);
  std::atomic<int> num_reported = 0, num_tried = 0;
  {
    replica_groups groups(
        1, 0, {{{0}, {0, 1}}, {{1}, {0, 1}}},
        [&](const wanted_group& wanted) -> std::shared_ptr<communicator> {
          ++num_tried;
          begun.release();
          while (true) {
            wanted.check();
            std::this_thread::sleep_for(1ms);
          }
        },
        [&](const std::exception&) { ++num_reported; });
    begun.acquire();
    if (!is_destroyed) groups.end();
    if (!is_destroyed) CHECK(groups.wait_for({0}, 20ms) == nullptr);
  }
  CHECK(num_reported == 0);
  CHECK(num_tried == 1);
}

TEST_CASE("groups that are destroyed leave calls in flight failed, and a device that has them may ask") {
  std::vector<std::shared_ptr<communicator>> members;
  for (auto& each : collective::make_local_group(2)) members.push_back(std::move(each));
  auto x = tensor::full({4}, 1);
  std::optional<replica_group> of_device;
  work waiting;
  {
    replica_groups groups(
        1, 0, {{{0}, {0, 1}}}, [&](const wanted_group&) { return members[0]; }, ignore);
    of_device = found_in(groups, 0);
    waiting = of_device->calls->all_reduce(x);
    groups.end();
    CHECK(waiting.is_done());
  }
  CHECK_THROWS_AS(waiting.wait(), collective_error);
  CHECK(members[0]->failure() != nullptr);
}
