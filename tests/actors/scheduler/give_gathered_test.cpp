#include <catch2/catch_test_macros.hpp>

#include "one_scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

actors::job::call_request gather(std::uint32_t index, std::uint64_t position, std::int32_t receiver = -1) {
  actors::job::call_request request{index, actors::job::call_kind::gather, 0, position, 0, 0};
  request.num_gathered = 2;
  request.receiver = receiver;
  return request;
}

actors::job::call_request predict(std::uint32_t index, std::uint64_t batches) {
  actors::job::call_request request{index, actors::job::call_kind::predict, 1, 0, batches, 2};
  request.num_gathered = 2 * batches;
  return request;
}

void taken(one_scheduler& here, int rank, std::uint32_t call, const std::string& problem = {}) {
  here.actors.send(here.scheduler,
                   actors::messages::gathered_received{here.with.generation, rank, call, problem});
}

void cancel(one_scheduler& here, std::uint32_t call) {
  here.actors.send(here.scheduler, actors::messages::cancel_training{call});
}

}  // namespace

TEST_CASE("weights are requested from every device, and the call ends when all programs have them") {
  one_scheduler here;
  here.all_enter(gather(0, 0));
  here.all_restored();
  CHECK(here.granted(0).call.kind == actors::job::call_kind::gather);
  CHECK(here.granted(1).call.kind == actors::job::call_kind::gather);
  taken(here, 0, 0);
  taken(here, 0, 0);
  CHECK(here.finished(1).empty());
  taken(here, 1, 7);
  CHECK(here.finished(1).empty());
  taken(here, 1, 0);
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1).problem.empty());
}

TEST_CASE("a call for the weights of one rank waits for that rank only, and its error goes to all") {
  one_scheduler here;
  here.all_enter(gather(0, 0, 0));
  here.all_restored();
  taken(here, 0, 0, "the disk is full");
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1).problem == "rank 0: the disk is full");
}

TEST_CASE("an impossible call ends at once, before anything is gathered, and the job continues") {
  one_scheduler here;
  auto impossible = gather(0, 0, 0);
  impossible.problem = "there is no such folder";
  here.enter(0, impossible);
  here.enter(1, gather(0, 0, 0));
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1).problem == "rank 0: there is no such folder");
  CHECK(here.num_credits() == 0);
  here.all_seen(0);
  here.all_enter(gather(1, 0, 0));
  here.all_restored();
  CHECK(here.num_credits() == 1);
}

TEST_CASE("a call of predictions ends when all batches are done and all programs have the outputs") {
  one_scheduler here;
  here.all_enter(predict(0, 2));
  here.all_restored();
  CHECK(here.granted().call.source == 1);
  CHECK(here.granted().end_step == 2);
  here.all_done(0);
  taken(here, 0, 0);
  taken(here, 1, 0);
  CHECK(here.finished(1).empty());
  here.all_done(1);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("cancelled training ends one step after the granted steps, and that step is copied") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  here.all_done(0);
  cancel(here, 0);
  CHECK(here.granted().end_step == 5);
  CHECK(steps_of(here.granted().copies) == numbers{5});
  here.train_to_end(1, 5);
  REQUIRE(here.finished(1) == numbers{0});
  CHECK(here.result(1).steps_done == 5);
  CHECK(here.result(1).metrics == here.metrics_of(4));
  // Another call goes on from there.
  here.all_enter(here.train(1, 8));
  CHECK(here.granted().first_step == 5);
  CHECK(here.granted().end_step == 8);
}

TEST_CASE("a cancel that arrives after its call, or for another call, changes nothing") {
  one_scheduler here({.window = 4});
  here.begin_training(6);
  cancel(here, 3);
  here.train_to_end(0, 6);
  cancel(here, 0);
  here.all_enter(here.train(1, 100));
  CHECK(here.granted().end_step == 10);
}

TEST_CASE("after a loss a cancelled call repeats the steps that the program was told of before it ends") {
  one_scheduler here({.generation = 2});
  cancel(here, 1);
  auto before = finished_training(0, 2);
  for (int rank : {0, 1})
    here.enter(rank, here.train(1, 100), {{3, {rank}, 1, own}, {3, {1 - rank}, 1, peer}}, {before}, 6);
  here.all_restored();
  CHECK(here.granted().first_step == 3);
  CHECK(here.granted().end_step == 6);
}

TEST_CASE("repeated steps of earlier calls are not cancelled") {
  one_scheduler here({.generation = 2, .window = 100});
  cancel(here, 1);
  auto before = finished_training(0, 20);
  here.all_enter(here.train(1, 100), {before});
  here.all_restored();
  CHECK(here.granted().end_step == 20);
}

TEST_CASE("the next job of the same processes starts at step 0") {
  one_scheduler here;
  here.begin_training(3);
  here.train_to_end(0, 3);
  here.all_enter(here.barrier(1));
  here.all_seen(1);
  here.job_number = 1;
  here.first_call = 2;
  here.know_job();
  auto commands = here.num_commands();
  here.all_enter(here.train(2, 2));
  REQUIRE(here.num_commands() == commands + 1);
  CHECK(here.command().plan.from_scratch);
  here.all_restored();
  CHECK(here.granted().first_step == 0);
  CHECK(here.granted().end_step == 2);
  CHECK(here.granted().call.source == 0);
  here.train_to_end(0, 2, 2);
  CHECK(here.result(1).steps_done == 2);
}

TEST_CASE("steps of another job are not repeated") {
  one_scheduler here({.generation = 2, .knows_job = false});
  here.job_number = 1;
  here.first_call = 1;
  here.know_job();
  here.all_enter(here.train(1, 10, 7), {finished_training(0, 4, 3)});
  here.all_restored();
  CHECK(here.granted().call.source == 7);
}
