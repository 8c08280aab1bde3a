// Loader, peer copy store and snapshot writer are restarted within a generation.
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "one_process.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job/metrics_tensor.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// Fails when `failing` says so.
struct failing_source : fake_source {
  using fake_source::fake_source;
  batch at(std::uint64_t step) override {
    asked.push_back(step);
    if (failing(step)) throw std::runtime_error("cannot read the samples");
    return fake_source::at(step);
  }
  std::function<bool(std::uint64_t)> failing = [](std::uint64_t) { return false; };
  numbers asked;
};

/// A job whose calls use source 1, which is given.
void begin_with(one_process& here, const std::shared_ptr<failing_source>& source) {
  here.define();
  here.actors.send(here.supervisor, actors::messages::add_source{source});
  here.view(1);
  here.enter(0);
  here.restore(1);
}

actors::messages::step_credit of_source_1(std::uint64_t end, std::uint64_t generation = 1) {
  return {generation, {0, actors::job::call_kind::train, 1, 100, 0, 0}, 0, end, {}, 0};
}

bool has_undisturbed(const one_process& here) {
  return here.members.requests.empty() && here.members.failures.empty() && here.out.begun.empty();
}

fault::fault_plan faults_of(const std::string& text) { return {text, 1, 0}; }

}  // namespace

// ---- the loader

TEST_CASE("a device that waits for samples asks the loader that was restarted, which has all sources") {
  one_process here;
  auto source = std::make_shared<failing_source>(1);
  bool failed = false;
  source->failing = [&](std::uint64_t) { return !std::exchange(failed, true); };
  begin_with(here, source);
  here.receive(1, {actors::actor::actor_role::device, 1}, of_source_1(1));
  here.activations_come(1, 0);
  here.advance(1ms);
  CHECK(here.steps_done(1) == numbers{0});
  CHECK(source->asked == numbers{0, 0});
  CHECK(has_undisturbed(here));
  CHECK(here.logged().find("actor=\"the loader\" reason=\"cannot read the samples\" restarts=\"the "
                           "loader\" new_generation=no") != std::string::npos);
}

TEST_CASE("a loader that fails while it reads ahead is asked again for what it has not sent, and no more") {
  one_process here;
  auto source = std::make_shared<failing_source>(1);
  bool failed = false;
  source->failing = [&](std::uint64_t step) { return step == 1 && !std::exchange(failed, true); };
  begin_with(here, source);
  here.receive(1, {actors::actor::actor_role::device, 1}, of_source_1(3));
  here.advance(1ms);  // the device has the samples of step 0 and waits for activations
  CHECK(source->asked == numbers{0, 1, 1});
  for (std::uint64_t step : {0, 1, 2}) here.activations_come(1, step);
  CHECK(here.steps_done(1) == numbers{0, 1, 2});
  CHECK(source->asked == numbers{0, 1, 1, 2});
  CHECK(has_undisturbed(here));
}

TEST_CASE("restarts of the loader wait longer each time") {
  one_process here;
  auto source = std::make_shared<failing_source>(1);
  source->failing = [](std::uint64_t) { return true; };
  begin_with(here, source);
  here.receive(1, {actors::actor::actor_role::device, 1}, of_source_1(1));
  here.advance(1ms);
  CHECK(source->asked.size() == 2);
  here.advance(48ms);
  CHECK(source->asked.size() == 2);
  here.advance(2ms);
  CHECK(source->asked.size() == 3);
  here.advance(98ms);
  CHECK(source->asked.size() == 3);
  here.advance(2ms);
  CHECK(source->asked.size() == 4);
}

TEST_CASE("a loader that fails again and again costs a new generation, then the job") {
  one_process here;
  auto source = std::make_shared<failing_source>(1);
  source->failing = [](std::uint64_t) { return true; };
  begin_with(here, source);
  for (std::uint64_t generation = 1; generation <= 4; ++generation) {
    here.receive(generation, {actors::actor::actor_role::device, 1}, of_source_1(1, generation));
    for (int i = 0; i < 5; ++i) here.advance(200ms);
    if (generation == 4) break;
    CHECK(here.members.failures.empty());
    REQUIRE(here.members.requests.size() == generation);
    here.fence(generation + 1);
    here.view(generation + 1);
    here.restore(generation + 1);
  }
  CHECK(source->asked.size() == 7);
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0] ==
        "the loader on rank 1 failed: cannot read the samples (and again after 6 restarts)");
}

TEST_CASE("failures of the loader that are longer ago than the period are forgiven") {
  one_process here;
  auto source = std::make_shared<failing_source>(1);
  std::set<std::uint64_t> failed;
  source->failing = [&](std::uint64_t step) { return failed.insert(step).second; };
  begin_with(here, source);
  for (std::uint64_t step = 0; step < 6; ++step) {
    here.receive(1, {actors::actor::actor_role::device, 1}, of_source_1(step + 1));
    here.activations_come(1, step);
    here.advance(31s);
  }
  CHECK(here.steps_done(1) == numbers{0, 1, 2, 3, 4, 5});
  CHECK(has_undisturbed(here));
}

TEST_CASE("bad input that the loader finds fails the job at once") {
  one_process here;
  auto source = std::make_shared<failing_source>(1);
  source->failing = [](std::uint64_t) -> bool { throw bad_input("label 11 of 10 classes"); };
  begin_with(here, source);
  here.receive(1, {actors::actor::actor_role::device, 1}, of_source_1(1));
  here.advance(5s);
  CHECK(here.members.failures ==
        std::vector<std::string>{"the loader on rank 1 failed: label 11 of 10 classes"});
  CHECK(source->asked.size() == 1);
}

TEST_CASE("a restart that was due for the previous job is not made for the next") {
  one_process here;
  auto source = std::make_shared<failing_source>(1);
  int failures = 2;
  source->failing = [&](std::uint64_t) { return failures-- > 0; };
  begin_with(here, source);
  here.receive(1, {actors::actor::actor_role::device, 1}, of_source_1(1));
  here.advance(1ms);  // failed twice; the second restart is due in 50 ms
  here.define();
  here.advance(1s);
  CHECK(source->asked.size() == 2);
  CHECK(has_undisturbed(here));
}

// ---- the peer copy store

TEST_CASE("a peer copy store that fails is restarted, and the scheduler hears what was lost") {
  one_process here;
  here.faults = faults_of("keep_copy:fail@rank=1,step=2");
  here.begin();
  here.train(2);
  here.part_arrives(1, 1, 0, packed_with(7, 1, 0));
  here.part_arrives(1, 2, 0, packed_with(7, 2, 0));
  REQUIRE(here.sent<actors::messages::replicas_lost>().size() == 1);
  CHECK(here.sent<actors::messages::replicas_lost>()[0].rank == 1);
  here.advance(1ms);
  REQUIRE(here.sent<actors::messages::replicas_wanted>().size() == 1);
  CHECK(here.sent<actors::messages::replicas_wanted>()[0].generation == 1);
  CHECK(has_undisturbed(here));
  // What the peer sends again is kept and told as before.
  auto told = here.sent<actors::messages::part_held>().size();
  here.part_arrives(1, 2, 0, packed_with(7, 2, 0));
  REQUIRE(here.sent<actors::messages::part_held>().size() == told + 1);
  CHECK(here.sent<actors::messages::part_held>().back().part == recovery::held_part{2, {0}, 1, peer});
  here.fence(2);
  here.view(2);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.parts ==
        std::vector<recovery::held_part>{{1, {1}, 1, own}, {2, {1}, 1, own}, {2, {0}, 1, peer}});
}

TEST_CASE("after its loss a replica is no part of the inventory, and the restore finds what is held") {
  one_process here;
  here.faults = faults_of("keep_copy:fail@rank=1,step=2");
  here.begin();
  here.train(2);
  here.part_arrives(1, 1, 0, packed_with(7, 1, 0));
  here.part_arrives(1, 2, 0, packed_with(7, 2, 0));
  here.fence(2);  // before it is restarted
  here.view(2);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.parts ==
        std::vector<recovery::held_part>{{1, {1}, 1, own}, {2, {1}, 1, own}});
  here.advance(1ms);
  here.restore(2, own_plan(2));
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 2);
  here.part_arrives(2, 2, 0, packed_with(7, 2, 0));
  CHECK(here.sent<actors::messages::part_held>().back().part == recovery::held_part{2, {0}, 2, peer});
}

TEST_CASE("a replica that is lost when the restore needs it costs a new generation, once") {
  one_process here(1, 2, 4);
  here.faults = faults_of("keep_copy:fail@rank=1,step=5");
  here.begin();
  for (int stage : {0, 1}) here.part_arrives(1, 4, stage, packed_with(7, 4, static_cast<int>(stage)));
  here.fence(2);
  here.view(2);
  here.part_arrives(2, 5, 0, packed_with(7, 5, 0));  // the store fails after the inventory was sent
  here.advance(1ms);
  here.restore(2, {4, false, {from(0, 1, peer), from(1, 1, peer), from(2, 0, peer), from(3, 0, peer)}});
  here.advance(1ms);
  CHECK(here.members.failures.empty());
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0] ==
        std::pair<std::uint64_t, std::string>(2, "a peer's state is gone: no replica of stage 0 at step 4"));
}

TEST_CASE("stages send their copies again when the peer copy store of the peer was restarted") {
  one_process here;
  here.begin();
  here.train(2);
  here.out.tensors.clear();
  here.receive(1, {actors::actor::actor_role::supervisor, 1}, actors::messages::replicate_copies{1});
  REQUIRE(here.out.tensors.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(here.out.tensors[i].to_rank == 0);
    CHECK(here.out.tensors[i].tag ==
          transport::tensor_tag{1, i + 1, 0, 1, 0, transport::tensor_role::snapshot_part});
  }
  here.receive(1, {actors::actor::actor_role::supervisor, 1}, actors::messages::replicate_copies{2});
  CHECK(here.out.tensors.size() == 2);
}

// ---- the snapshot writer

TEST_CASE("a part that was lost with the disk actor is written again when the scheduler asks for it") {
  temp_folder folder;
  one_process here;
  here.folder = folder.path();
  here.faults = faults_of("part_half_written:fail@rank=1");
  here.begin();
  here.give(1, 0, 1, {{1, 1}});
  here.activations_come(1, 0);
  CHECK(here.sent<actors::messages::part_written>().empty());
  here.advance(1ms);
  REQUIRE(here.sent<actors::messages::writes_lost>().size() == 1);
  CHECK(here.sent<actors::messages::writes_lost>()[0].rank == 1);
  CHECK(here.logged().find("restarts=\"the disk actor, the snapshot writer\" new_generation=no") !=
        std::string::npos);
  here.receive(1, {actors::actor::actor_role::supervisor, 1}, actors::messages::write_copies{1, 1});
  REQUIRE(here.sent<actors::messages::part_written>().size() == 1);
  CHECK(here.sent<actors::messages::part_written>()[0].problem.empty());
  CHECK(here.sent<actors::messages::part_written>()[0].step == 1);
  here.give(1, 1, 2, {{2, 1}});
  here.activations_come(1, 1);
  CHECK(here.sent<actors::messages::part_written>().back().step == 2);
  CHECK(has_undisturbed(here));
}

TEST_CASE("a snapshot writer that fails while a state is read reads it again after its restart") {
  temp_folder folder;
  one_process here;
  here.folder = folder.path();
  here.faults = faults_of("read_part:fail@rank=1");
  here.define();
  here.view(1);
  here.enter(0);
  // A snapshot to read from.
  snapshot::snapshot_store_options options;
  options.folder = folder.path();
  snapshot::snapshot_store store(options);
  snapshot::snapshot_manifest manifest;
  manifest.job_id = "job";
  manifest.step = 4;
  manifest.generation = 1;
  manifest.num_stages = 2;
  manifest.numeric_class = "class";
  for (int stage : {0, 1}) {
    snapshot::snapshot_part part{
        "job", 4, {{stage}}, 2, 1, "class", wire::unpack_state(packed_with(7, 4, stage))};
    if (stage == 1) part.tensors.push_back(actors::job::metrics_tensor({}));
    manifest.parts.push_back(store.write_part(4, {stage}, encode_part(part).bytes()));
  }
  store.commit(manifest);
  here.restore(
      1, plan_of(4, from(0, 0, recovery::part_location::disk), from(1, 1, recovery::part_location::disk)));
  CHECK(here.sent<actors::messages::process_restored>().empty());
  here.advance(1ms);
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
  CHECK(has_undisturbed(here));
  here.give(1, 4, 5);
  here.activations_come(1, 4);
  CHECK(here.steps_done(1) == numbers{4});
}
