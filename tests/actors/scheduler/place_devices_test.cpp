// Which members get the devices, and what members without one are told.
#include <catch2/catch_test_macros.hpp>

#include "one_scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

mesh::hosting on_ranks(const std::vector<int>& ranks) {
  std::vector<world_rank> members;
  for (auto rank : ranks) members.push_back({rank});
  return mesh::hosting(members);
}

}  // namespace

TEST_CASE("with all members present the devices are where the job began, whoever holds what") {
  one_scheduler here({.world_size = 3, .generation = 2});
  // Rank 1 was started again; its neighbour holds a copy.
  here.enter(0, here.train(0, 10), {{5, {0}, 1, own}, {5, {2}, 1, peer}});
  here.enter(1, here.train(0, 10));
  here.enter(2, here.train(0, 10), {{5, {2}, 1, own}, {5, {1}, 1, peer}});
  CHECK(here.command().hosts == on_ranks({0, 1, 2}));
  CHECK(here.command().plan ==
        recovery::restore_plan{5, false, {{{0}, 0, own}, {{1}, 2, peer}, {{2}, 2, own}}});
}

TEST_CASE("devices stay where the newest generation had them, as the processes report it") {
  one_scheduler here({.world_size = 3, .generation = 4});
  auto say = [&](int rank, const recovery::past_hosting& before) {
    here.actors.send(here.scheduler, actors::messages::copies_held{4, {rank, 0, {}, 0, before}});
    here.actors.send(here.scheduler, actors::messages::call_entered{4, rank, here.train(0, 10), 0, 0});
  };
  say(0, {2, on_ranks({1, 2, 0})});
  say(1, {});  // it was started again
  say(2, {3, on_ranks({2, 0, 1})});
  CHECK(here.command().hosts == on_ranks({2, 0, 1}));
}

TEST_CASE("devices above a member's share move, first to one that holds their state") {
  one_scheduler here({.world_size = 3, .generation = 2, .home = on_ranks({0, 0, 0})});
  here.enter(0, here.train(0, 10), {{5, {0}, 1, own}, {5, {1}, 1, own}, {5, {2}, 1, own}});
  here.enter(1, here.train(0, 10), {{5, {2}, 1, peer}});
  here.enter(2, here.train(0, 10), {{5, {1}, 1, peer}});
  CHECK(here.command().hosts == on_ranks({0, 2, 1}));
  CHECK(here.command().plan ==
        recovery::restore_plan{5, false, {{{0}, 0, own}, {{1}, 2, peer}, {{2}, 1, peer}}});
}

TEST_CASE("members without a device are restored and hear what is committed; others hear it of devices") {
  one_scheduler here({.world_size = 3, .num_devices = 2});
  here.begin_training(2);
  REQUIRE(here.num_credits() == 1);
  CHECK(here.command(2).hosts == on_ranks({0, 1}));
  for (std::uint64_t step : {1, 2}) {
    here.all_done(step - 1);
    here.held(0, step, 0, own);
    here.held(1, step, 0, peer);
    here.held(1, step, 1, own);
    CHECK(here.supervisors[2].all<actors::messages::copies_committed>().size() == step - 1);
    here.held(2, step, 1, peer);
    CHECK(here.supervisors[2].last<actors::messages::copies_committed>().step == step);
  }
  CHECK(here.supervisors[0].all<actors::messages::copies_committed>().empty());
  CHECK(here.supervisors[1].all<actors::messages::copies_committed>().empty());
  for (int rank : {1, 2}) CHECK(here.finished(rank) == numbers{0});
}

TEST_CASE("a call waits for members without a device as for any other") {
  one_scheduler here({.world_size = 3, .num_devices = 2});
  here.enter(0, here.train(0, 10));
  here.enter(1, here.train(0, 10));
  CHECK(here.num_commands() == 0);
  here.enter(2, here.train(0, 10));
  CHECK(here.num_commands() == 1);
  here.restored(0);
  here.restored(1);
  CHECK(here.num_credits() == 0);
  here.restored(2);
  CHECK(here.num_credits() == 1);
}

TEST_CASE("a member that hosted a stage before hears when its copies may go") {
  one_scheduler here({.world_size = 2, .generation = 2, .home = on_ranks({1, 0})});
  here.enter(0, here.train(0, 10), {{5, {0}, 1, own}, {5, {1}, 1, peer}});
  here.enter(1, here.train(0, 10), {{5, {1}, 1, own}, {5, {0}, 1, peer}});
  CHECK(here.command().hosts == on_ranks({1, 0}));
  here.all_restored();
  here.held(1, 6, 0, own);
  here.held(0, 6, 0, peer);
  here.held(0, 6, 1, own);
  here.held(1, 6, 1, peer);
  for (const auto& supervisor : here.supervisors)
    CHECK(supervisor.last<actors::messages::copies_committed>().step == 6);
}

TEST_CASE("a snapshot writer that is lost on a member without a device has nothing to write again") {
  one_scheduler here({.world_size = 3, .on_disk = true, .num_devices = 2});
  here.begin_training(1);
  here.all_done(0);
  here.actors.send(here.scheduler, actors::messages::writes_lost{1, 2});
  for (const auto& supervisor : here.supervisors)
    CHECK(supervisor.all<actors::messages::write_copies>().empty());
  here.actors.send(here.scheduler, actors::messages::writes_lost{1, 1});
  CHECK(here.supervisors[1].last<actors::messages::write_copies>().step == 1);
}
