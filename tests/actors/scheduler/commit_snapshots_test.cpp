#include <catch2/catch_test_macros.hpp>

#include "one_scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("a snapshot stores the results of the calls before it") {
  one_scheduler here({.generation = 2, .window = 8, .on_disk = true});
  here.all_enter(here.train(1, 1), {finished_training(0, 0)});
  here.all_restored();
  here.all_done(0, 1);
  here.all_held(1);
  here.all_written(1);
  REQUIRE(here.disk->committed.size() == 1);
  CHECK(here.disk->committed_results == std::vector<std::size_t>{1});
}

TEST_CASE("a credit names the steps to copy: every step, or fewer, and always the last") {
  one_scheduler each({.window = 8}), third({.window = 8, .memory_every_steps = 3});
  each.begin_training(4);
  third.begin_training(8);
  CHECK(steps_of(each.granted().copies) == numbers{1, 2, 3, 4});
  CHECK(steps_of(third.granted().copies) == numbers{3, 6, 8});
  for (const auto& copy : third.granted().copies) CHECK(copy.to_disk == 0);
}

TEST_CASE("later credits name only copies of steps that were not granted before") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  here.all_done(0);
  here.all_done(1);
  CHECK(steps_of(here.granted().copies) == numbers{5, 6});
}

TEST_CASE("with a folder the last step of a call and the steps of the cadence are written to disk") {
  one_scheduler here({.window = 8, .on_disk = true, .disk_every_steps = 3});
  here.begin_training(5);
  numbers on_disk;
  for (const auto& copy : here.granted().copies)
    if (copy.to_disk) on_disk.push_back(copy.step);
  CHECK(on_disk == numbers{3, 5});
}

TEST_CASE(
    "the time since the last snapshot on disk continues through generations, as the processes report it") {
  one_scheduler here({.generation = 2, .window = 8, .on_disk = true, .disk_interval = 60s});
  for (auto [rank, since] : {std::pair(0, 3.0), {1, 50.0}}) {
    here.actors.send(here.scheduler, actors::messages::copies_held{2, {rank, since, {}}});
    here.actors.send(here.scheduler, actors::messages::call_entered{2, rank, here.train(0, 100), 0, 0});
  }
  for (int rank : {0, 1}) CHECK(here.command(rank).since_disk_s == 50);
  here.actors.advance(11s);
  here.all_restored();
  REQUIRE_FALSE(here.granted().copies.empty());
  CHECK(here.granted().copies[0].step == 1);
  CHECK(here.granted().copies[0].to_disk == 1);
  CHECK(here.granted().copies[1].to_disk == 0);
}

TEST_CASE("with a folder a call ends when its last state is on disk") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  CHECK(here.finished(1).empty());
  here.written(1, 1);
  CHECK(here.disk->committed.empty());
  here.written(1, 0);
  CHECK(here.finished(1) == numbers{0});
  REQUIRE(here.disk->committed.size() == 1);
  const auto& manifest = here.disk->committed[0];
  CHECK(manifest.job_id == "job-1");
  CHECK(manifest.step == 1);
  CHECK(manifest.generation == 1);
  CHECK(manifest.num_stages == 2);
  CHECK(manifest.numeric_class == "class");
  CHECK(manifest.identity ==
        std::vector<std::pair<std::string, std::string>>{{"seed", "1"}, {"batch", "64"}});
  REQUIRE(manifest.parts.size() == 2);
  CHECK(manifest.parts[1] == snapshot::manifest_part{{{1}}, "file", 10, "sum", "host"});
}

TEST_CASE("a part that cannot be written does not delay the end of the call") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.written(1, 0, "disk full");
  CHECK(here.finished(1) == numbers{0});
  here.written(1, 1);
  CHECK(here.disk->committed.empty());
}

TEST_CASE("a manifest that cannot be written does not delay the end of the call") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.disk->problem = "disk full";
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.all_written(1);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("the scheduler has the written parts of a failed snapshot removed, also those reported later") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.written(1, 0, "disk full");
  for (const auto& supervisor : here.supervisors) {
    CHECK(supervisor.last<actors::messages::snapshot_failed>().generation == 1);
    CHECK(supervisor.last<actors::messages::snapshot_failed>().step == 1);
  }
  here.written(1, 1);
  CHECK(here.supervisors[1].all<actors::messages::snapshot_failed>().size() == 2);
}

TEST_CASE("the scheduler has the parts of a snapshot without a manifest removed") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.disk->problem = "disk full";
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.all_written(1);
  CHECK(here.supervisors[1].last<actors::messages::snapshot_failed>().step == 1);
}

TEST_CASE("no more than two snapshots are on their way to disk, and steps wait for the disk") {
  one_scheduler here({.window = 8, .on_disk = true, .disk_every_steps = 2});
  here.begin_training(20);
  CHECK(here.granted().end_step == 5);
  for (std::uint64_t step = 0; step < 5; ++step) here.all_done(step);
  here.all_held(5);
  CHECK(here.num_credits() == 1);
  here.all_written(2);
  CHECK(here.granted().first_step == 5);
  CHECK(here.granted().end_step == 7);
}

TEST_CASE("a disk that stalls does not stop the training: snapshots are skipped until it goes on") {
  one_scheduler here({.window = 2, .on_disk = true, .disk_every_steps = 1});
  here.begin_training(10);
  for (std::uint64_t step : {0, 1}) here.all_done(step);
  here.all_held(2);
  here.actors.advance(9s);
  CHECK(here.num_credits() == 1);
  here.actors.advance(2s);
  REQUIRE(here.num_credits() == 2);
  CHECK(here.granted().end_step == 4);
  for (const auto& copy : here.granted().copies) CHECK(copy.to_disk == 0);
  for (std::uint64_t step : {2, 3}) here.all_done(step);
  here.all_held(4);
  CHECK(here.granted().end_step == 6);
  for (std::uint64_t step : {1, 2}) here.all_written(step);
  for (std::uint64_t step : {4, 5}) here.all_done(step);
  here.all_held(6);
  CHECK(here.granted().copies[0].to_disk == 1);
}

TEST_CASE("parts of other generations are ignored") {
  one_scheduler here({.generation = 3, .window = 8, .on_disk = true});
  here.begin_training(1);
  here.all_done(0);
  for (std::uint64_t other : {2, 4})
    for (int rank : {0, 1}) {
      here.actors.send(here.scheduler, actors::messages::part_held{other, rank, {1, {rank}, other, own}});
      here.actors.send(here.scheduler,
                       actors::messages::part_held{other, 1 - rank, {1, {rank}, other, peer}});
      here.actors.send(here.scheduler,
                       actors::messages::part_written{other, 1, {{{rank}}, "f", 1, "c", "h"}, ""});
    }
  CHECK(here.disk->committed.empty());
  CHECK(here.finished(1).empty());
}
