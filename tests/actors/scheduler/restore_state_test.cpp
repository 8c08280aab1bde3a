#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <tuple>

#include "one_scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("a fresh job begins from scratch without looking at the disk") {
  one_scheduler here({.on_disk = true});
  here.disk->on_disk.emplace();
  here.all_enter(here.train(0, 10));
  CHECK(here.disk->num_searches == 0);
  for (int rank : {0, 1}) {
    CHECK(here.command(rank).generation == 1);
    CHECK(here.command(rank).plan.from_scratch);
  }
}

TEST_CASE("after a failure every stage restores its owner's copy of the newest step that all owners hold") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 10), {{4, {0}, 1, own}, {5, {0}, 1, own}});
  here.enter(1, here.train(0, 10), {{3, {1}, 1, own}, {4, {1}, 1, own}});
  CHECK(here.command(1).plan == recovery::restore_plan{4, false, {{{0}, 0, own}, {{1}, 1, own}}});
}

TEST_CASE("a lost process's stage comes from the peer that kept it") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 10), {{4, {0}, 1, own}, {4, {1}, 1, peer}});
  here.enter(1, here.train(0, 10));
  CHECK(here.command(0).plan == recovery::restore_plan{4, false, {{{0}, 0, own}, {{1}, 0, peer}}});
}

TEST_CASE("copies of rolled back steps are ignored") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 5), {{4, {0}, 1, own}, {4, {1}, 1, peer}, {5, {0}, 1, own}});
  here.enter(1, here.train(0, 5), {{4, {1}, 1, own}, {4, {0}, 1, peer}, {5, {0}, 1, peer}});
  CHECK(here.command().plan.step == 4);
  here.all_restored();
  here.all_done(4);
  here.held(1, 5, 1, own);
  here.held(0, 5, 1, peer);
  CHECK(here.finished(1).empty());
  here.held(0, 5, 0, own);
  here.held(1, 5, 0, peer);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("a state without a copy on another process is computed again from the initial weights") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 10), {{4, {0}, 1, own}});
  here.enter(1, here.train(0, 10));
  CHECK(here.command().plan.from_scratch);
  CHECK(here.members.failures.empty());
}

TEST_CASE(
    "the loss of all copies of a committed state ends a job without a folder, and the error names the "
    "remedy") {
  for (const auto& with : {scheduler_settings{.generation = 2, .committed_step = 4},
                           scheduler_settings{.generation = 2, .trained_before = true}}) {
    one_scheduler here(with);
    here.all_enter(here.train(0, 10));
    CHECK(here.num_commands() == 0);
    REQUIRE(here.members.failures.size() == 1);
    CHECK(here.members.failures[0].find("--snapshot-dir") != std::string::npos);
    CHECK(here.members.failures[0].find("--on-lost-state restart") != std::string::npos);
  }
}

TEST_CASE("with lost_state_policy::restart a job starts from scratch after the loss of all copies") {
  one_scheduler here(
      {.generation = 2, .on_lost_state = actors::job::lost_state_policy::restart, .committed_step = 4});
  here.all_enter(here.train(0, 10));
  CHECK(here.command().plan.from_scratch);
  CHECK(here.members.failures.empty());
}

TEST_CASE("if no snapshot on disk is usable the job ends and names each one") {
  one_scheduler here({.generation = 2, .on_disk = true});
  here.disk->unusable = {"the snapshot of step 8 is damaged", "the snapshot of step 4 is damaged"};
  here.all_enter(here.train(0, 10));
  CHECK(here.num_commands() == 0);
  REQUIRE(here.members.failures.size() == 1);
  for (auto text : {"step 8", "step 4"}) CHECK(here.members.failures[0].find(text) != std::string::npos);
}

TEST_CASE("if no process has a stage in memory, all stages restore the snapshot on disk") {
  one_scheduler here({.generation = 2, .on_disk = true});
  here.disk->on_disk.emplace();
  here.disk->on_disk->step = 3;
  here.disk->on_disk->numeric_class = "class";
  here.disk->on_disk->identity = {{"seed", "1"}, {"batch", "64"}};
  here.enter(0, here.train(0, 10), {{4, {0}, 1, own}});
  here.enter(1, here.train(0, 10));
  CHECK(here.command().plan ==
        recovery::restore_plan{
            3, false, {{{0}, 0, recovery::part_location::disk}, {{1}, 1, recovery::part_location::disk}}});
  here.all_restored();
  CHECK(here.granted().first_step == 3);
}

TEST_CASE("copies in memory are preferred to the snapshot on disk") {
  one_scheduler here({.generation = 2, .on_disk = true});
  here.disk->on_disk.emplace();
  here.enter(0, here.train(0, 10), {{4, {0}, 1, own}});
  here.enter(1, here.train(0, 10), {{4, {1}, 1, own}});
  CHECK(here.disk->num_searches == 0);
  CHECK(here.command().plan.step == 4);
}

TEST_CASE("with an empty folder all stages start from scratch") {
  one_scheduler here({.generation = 2, .on_disk = true, .committed_step = 1});
  here.all_enter(here.train(0, 10));
  CHECK(here.disk->num_searches == 1);
  CHECK(here.command().plan.from_scratch);
}

TEST_CASE(
    "a job that resumes continues from the snapshot found before its start, without reading the disk again") {
  snapshot::snapshot_manifest found;
  found.step = 30;
  one_scheduler here({.on_disk = true, .resume = true, .begin_with = found});
  here.all_enter(here.train(0, 40));
  CHECK(here.disk->num_searches == 0);
  CHECK(here.command().plan.step == 30);
}

TEST_CASE("a snapshot of a job with other options is refused, naming what differs") {
  one_scheduler here({.generation = 2, .on_disk = true, .resume = true});
  here.disk->on_disk.emplace();
  here.disk->on_disk->step = 30;
  here.disk->on_disk->numeric_class = "class";
  here.disk->on_disk->identity = {{"seed", "1"}, {"batch", "32"}};
  here.all_enter(here.train(0, 40));
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("batch is 64, the snapshot has 32") != std::string::npos);
  CHECK(here.members.failures[0].find("seed") == std::string::npos);
  CHECK(here.num_commands() == 0);
}

TEST_CASE("a snapshot of another numeric class is refused on all processes, with what to do") {
  one_scheduler here({.generation = 2, .on_disk = true});
  here.disk->on_disk.emplace();
  here.disk->on_disk->step = 30;
  here.disk->on_disk->numeric_class = "onednn-2.6.3-avx2";
  here.disk->on_disk->identity = {{"seed", "1"}, {"batch", "64"}};
  here.all_enter(here.train(0, 40));
  CHECK(here.num_commands() == 0);
  here.all_seen(0);
  for (int rank : {0, 1}) {
    const auto& why = here.result(rank).refused;
    CHECK(why.find("step 30") != std::string::npos);
    CHECK(why.find("onednn-2.6.3-avx2, these processes have class") != std::string::npos);
    CHECK(why.find("Use the version of Troupe") != std::string::npos);
  }
}

TEST_CASE(
    "a snapshot writer that ends during its search is restarted by its process, and the job continues") {
  one_scheduler here({.generation = 2, .on_disk = true, .resume = true});
  here.disk->fatal = true;
  here.all_enter(here.train(0, 40));
  CHECK(here.members.failures.empty());
  CHECK(here.num_commands() == 0);
}

TEST_CASE("a folder that cannot be read fails the job") {
  one_scheduler here({.generation = 2, .on_disk = true, .resume = true});
  here.disk->problem = "permission denied";
  here.all_enter(here.train(0, 40));
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("permission denied") != std::string::npos);
}

namespace {

/// The state of step 20, as `job_id` wrote it.
snapshot::snapshot_manifest written_by(const std::string& job_id) {
  snapshot::snapshot_manifest manifest;
  manifest.job_id = job_id;
  manifest.step = 20;
  manifest.numeric_class = "class";
  manifest.identity = {{"seed", "1"}, {"batch", "64"}};
  manifest.calls = snapshot::manifest_file{"calls.part", 10, "sum", "host"};
  return manifest;
}

/// On disk is the state of step 20, written by `job_id` in its third call, the first being one of 12 steps.
void put_on_disk(one_scheduler& here, const std::string& job_id) {
  here.disk->on_disk = written_by(job_id);
  auto evaluated = finished_training(1, 12);
  evaluated.kind = actors::job::call_kind::evaluate;
  here.disk->results = {finished_training(0, 12), evaluated};
}

}  // namespace

TEST_CASE(
    "after the loss of all processes they get the results of their calls again and continue from the disk") {
  one_scheduler here({.generation = 2, .on_disk = true});
  put_on_disk(here, "job-1");
  here.all_enter(here.train(0, 12));
  CHECK(here.num_commands() == 0);
  for (int rank : {0, 1}) {
    CHECK(here.finished(rank) == numbers{0, 1});
  }
  here.all_enter(here.evaluate(1, 12, 3));
  CHECK(here.num_commands() == 0);
  CHECK(here.result(1).kind == actors::job::call_kind::evaluate);
  CHECK(here.result(1).steps_done == 12);
  here.all_enter(here.train(2, 24));
  CHECK(here.command(1).plan.step == 20);
  CHECK(here.disk->num_searches == 1);
  CHECK(here.disk->num_reads == 1);
  here.all_restored();
  CHECK(here.granted().first_step == 20);
  CHECK(here.granted().end_step == 24);
}

TEST_CASE("after the loss of all processes the time since the last snapshot is the age of the one on disk") {
  using written = std::tuple<std::string, std::string, double>;  // by which job, when, seconds in the order
  for (const auto& [job_id, created, expected] :
       {written{"job-1", "2024-06-07T08:09:10Z", 60}, written{"job-1", "2999-01-01T00:00:00Z", 0},
        written{"job-1", "", 0}, written{"job-0", "2024-06-07T08:09:10Z", 0}}) {
    one_scheduler here({.generation = 2,
                        .window = 8,
                        .on_disk = true,
                        .disk_interval = std::chrono::seconds(60),
                        .resume = true});
    here.disk->on_disk = written_by(job_id);
    here.disk->on_disk->created = created;
    here.all_enter(here.train(0, 100));
    CHECK(here.command().since_disk_s == expected);
    here.all_restored();
    auto copies = here.granted().copies;
    bool soon =
        std::ranges::any_of(copies, [](const actors::messages::due_copy& copy) { return copy.to_disk != 0; });
    CHECK(soon == (expected == 60));
  }
}

namespace {

/// Of step 20, with the results of these calls, which its job began with.
void record(one_scheduler& here, const std::vector<actors::job::call_request>& calls) {
  here.disk->on_disk = written_by("job-0");
  here.disk->results.clear();
  for (const auto& call : calls) {
    auto result = finished_training(call.index, call.target_step, call.source);
    result.kind = call.kind;
    result.metrics = here.metrics_of(call.target_step);
    result.request_hash = description_of(call).hash();
    here.disk->results.push_back(result);
  }
}

using scheduler = one_scheduler;

}  // namespace

TEST_CASE("a job that resumes gives the same calls the results that they had") {
  for (std::uint64_t generation : {1, 2}) {
    one_scheduler here(
        {.generation = generation, .on_disk = true, .resume = true, .begin_with = written_by("job-0")});
    record(here, {scheduler::train(0, 12), scheduler::evaluate(1, 12, 3), scheduler::hash(2, 12)});
    here.all_enter(here.train(0, 12));
    here.all_seen(0);
    CHECK(here.num_commands() == 0);
    const auto& results = here.disk->results;
    here.all_enter(here.evaluate(1, 12, 3), {results[0]});
    here.all_seen(1);
    for (int rank : {0, 1}) {
      CHECK(here.finished(rank) == numbers{0, 1});
      CHECK(here.result(rank).metrics == here.metrics_of(12));
      CHECK(here.result(rank).from_snapshot);
    }
    here.all_enter(here.barrier(2), {results[0], results[1]});
    here.all_seen(2);
    here.all_enter(here.train(3, 24), results);
    CHECK(here.disk->num_reads == 1);
    CHECK(here.command(1).plan.step == 20);
    here.all_restored();
    CHECK(here.granted().first_step == 20);
    CHECK(here.granted().end_step == 24);
    CHECK(here.logged().empty());
  }
}

TEST_CASE("from its first other call on a job that resumes computes, and says what of a later state") {
  one_scheduler here({.generation = 1, .on_disk = true, .resume = true, .begin_with = written_by("job-0")});
  record(here, {scheduler::train(0, 12), scheduler::evaluate(1, 12, 3), scheduler::hash(2, 12)});
  here.all_enter(here.train(0, 12));
  here.all_seen(0);
  const auto& results = here.disk->results;
  here.all_enter(here.evaluate(1, 12, 4), {results[0]});  // of more batches
  CHECK(here.command().plan.step == 20);
  CHECK(here.logged().find("call number 1 (evaluate at step 12) is not what the job that wrote the "
                           "snapshot did there") != std::string::npos);
  here.all_restored();
  for (std::uint64_t batch : {0, 1, 2, 3}) here.all_done(batch, 1);
  here.all_seen(1);
  CHECK_FALSE(here.result().from_snapshot);
  here.all_enter(here.hash(2, 12), {results[0], results[1]});  // as recorded, but after another one
  CHECK(here.finished(0) == numbers{0, 1});
  CHECK(here.num_commands() == 1);
}

TEST_CASE("a job that is stopped while recorded results are given again says from which step it can go on") {
  one_scheduler here({.generation = 1, .on_disk = true, .resume = true, .begin_with = written_by("job-0")});
  record(here, {scheduler::train(0, 12)});
  here.all_enter(here.train(0, 12));
  here.all_seen(0);
  here.actors.send(here.scheduler, actors::messages::stop_job{15});
  REQUIRE(here.members.stops.size() == 1);
  CHECK(here.members.stops[0].find("before it went on from step 20, which is saved in ") == 0);
}

TEST_CASE("results of which an earlier version did not say what was asked for are not given again") {
  auto manifest = written_by("job-0");
  manifest.calls_can_be_repeated = false;
  one_scheduler here({.generation = 1, .on_disk = true, .resume = true, .begin_with = manifest});
  record(here, {scheduler::train(0, 12)});
  here.all_enter(here.train(0, 12));
  CHECK(here.disk->num_reads == 0);
  CHECK(here.command().plan.step == 20);
  CHECK(here.logged().find("answered with the state of step 20") != std::string::npos);
}

TEST_CASE("all programs get rank 0's value of a recorded one") {
  one_scheduler here;
  for (int rank : {0, 1}) {
    actors::job::call_request request{0, actors::job::call_kind::record, 0, 0, 0, 0};
    request.value = "of rank " + std::to_string(rank);
    here.enter(rank, request);
  }
  here.all_restored();
  here.all_seen(0);
  CHECK(here.result(0).value == "of rank 0");
  CHECK(here.result(1).value == "of rank 0");
}

TEST_CASE("nothing is granted before every process is restored") {
  one_scheduler here;
  here.all_enter(here.train(0, 10));
  here.restored(1);
  here.restored(1);
  CHECK(here.num_credits() == 0);
  here.restored(0);
  CHECK(here.num_credits() == 1);
}

TEST_CASE("a generation is restored only once") {
  one_scheduler here({.window = 8});
  here.begin_training(2);
  here.train_to_end(0, 2);
  here.all_enter(here.train(1, 4));
  CHECK(here.num_commands() == 1);
  CHECK(here.granted().first_step == 2);
  CHECK(here.granted().end_step == 4);
}

TEST_CASE("after the loss of all processes the results of any number of calls are delivered again") {
  one_scheduler here({.generation = 2, .on_disk = true});
  here.disk->on_disk = written_by("job-1");
  for (std::uint32_t call = 0; call < 1000; ++call)
    here.disk->results.push_back(finished_training(call, call / 50));
  std::vector<actors::job::call_result> told;
  for (int pieces = 0; told.size() < 1000 && pieces < 10; ++pieces) {
    here.all_enter(here.train(static_cast<std::uint32_t>(told.size()), told.size() / 50), told);
    told.clear();
    for (const auto& one : here.supervisors[1].all<actors::messages::call_finished>())
      told.push_back(one.result);
  }
  CHECK(told == here.disk->results);
  CHECK(here.disk->num_reads == 1);
  CHECK(here.num_commands() == 0);
  here.all_enter(here.train(1000, 24), told);
  CHECK(here.command(1).plan.step == 20);
}

TEST_CASE("a job that cannot read the results on disk ends with the reason") {
  one_scheduler earlier({.generation = 2, .on_disk = true}), damaged({.generation = 2, .on_disk = true});
  put_on_disk(earlier, "job-1");
  earlier.disk->on_disk->calls.reset();
  earlier.all_enter(earlier.train(0, 12));
  REQUIRE(earlier.members.failures.size() == 1);
  CHECK(earlier.members.failures[0].find("an earlier version of Troupe wrote it") != std::string::npos);
  put_on_disk(damaged, "job-1");
  damaged.disk->problem_of_results = "calls.part cannot be used";
  damaged.all_enter(damaged.train(0, 12));
  REQUIRE(damaged.members.failures.size() == 1);
  CHECK(damaged.members.failures[0].find("calls.part cannot be used") != std::string::npos);
  CHECK(earlier.num_commands() + damaged.num_commands() == 0);
}

TEST_CASE("a recovery without steps to repeat ends when the first step is granted") {
  one_scheduler here({.generation = 2});
  here.begin_training(10);
  CHECK(here.phases() == phases{cluster::recovery_phase::restored, cluster::recovery_phase::rebuilt,
                                cluster::recovery_phase::replayed});
  here.all_done(0);
  here.all_done(1);
  CHECK(here.phases().size() == 3);
}

TEST_CASE("a recovery with steps to repeat ends when the interrupted step is done, which is reported once") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 10), {{3, {0}, 1, own}}, {}, 5);
  here.enter(1, here.train(0, 10), {{3, {1}, 1, own}}, {}, 4);
  here.restored(0);
  CHECK(here.phases().empty());
  here.restored(1);
  CHECK(here.phases() == phases{cluster::recovery_phase::restored, cluster::recovery_phase::rebuilt});
  here.all_done(3);
  CHECK(here.phases().size() == 2);
  here.all_done(4);
  CHECK(here.phases() == phases{cluster::recovery_phase::restored, cluster::recovery_phase::rebuilt,
                                cluster::recovery_phase::replayed});
  here.all_done(5);
  CHECK(here.phases().size() == 3);
}

TEST_CASE("a recovery during a barrier ends with the barrier") {
  one_scheduler here({.generation = 2});
  here.all_enter(here.barrier(0));
  CHECK(here.phases() == phases{cluster::recovery_phase::restored, cluster::recovery_phase::rebuilt,
                                cluster::recovery_phase::replayed});
}
