#include "troupe/scheduler/scheduler_actor.hpp"

#include <spdlog/logger.h>

#include <catch2/catch_test_macros.hpp>

#include "actors/virtual_actors.hpp"
#include "support/drained.hpp"
#include "support/fake_program.hpp"
#include "support/recording_membership.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/job/finished_calls.hpp"
#include "troupe/program/packed_state.hpp"
#include "troupe/snapshot/weights_hash.hpp"
#include "troupe/snapshotter/messages.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// Answers as it is told to, or not yet.
struct fake_snapshotter_state {
  static constexpr const char* actor_name = "fake snapshotter";
  struct script {
    std::optional<snapshot_manifest> on_disk;
    std::string problem;  ///< not empty: the answer to everything
    bool silent = false;  ///< no answer at all
    bool fatal = false;   ///< it ends of what it is asked
    std::vector<snapshot_manifest> committed;
    int num_searches = 0;
  };
  fake_snapshotter_state(caf::event_based_actor* self, std::shared_ptr<script> what)
      : self_(self), what_(std::move(what)) {}
  caf::behavior make_behavior() {
    return {[this](const find_on_disk&) -> caf::result<found_on_disk> {
              ++what_->num_searches;
              if (what_->fatal) throw std::runtime_error("no memory");
              if (!what_->problem.empty()) return failure(what_->problem);
              return found_on_disk{what_->on_disk};
            },
            [this](const commit_snapshot& order) -> caf::result<snapshot_committed> {
              what_->committed.push_back(order.manifest);
              if (what_->silent)
                return pending_.emplace_back(self_->make_response_promise<snapshot_committed>());
              if (!what_->problem.empty()) return failure(what_->problem);
              return snapshot_committed{order.manifest.step};
            }};
  }
  caf::event_based_actor* self_;
  std::shared_ptr<script> what_;
  std::vector<caf::typed_response_promise<snapshot_committed>> pending_;
};

struct settings {
  int world_size = 2;
  std::uint64_t generation = 1;
  std::uint64_t window = 4;
  bool on_disk = false;
  std::uint64_t disk_every_steps = 0;
  std::chrono::seconds disk_interval = 0s;
  std::uint64_t memory_every_steps = 1;
  bool resume = false;
  bool knows_job = true;
};

/// The scheduler of a job with one stage and one device a process, its neighbours being probes; rank 0 is its
/// own node.
struct one_scheduler {
  virtual_actors actors;
  recording_membership members;
  std::shared_ptr<client_mailbox> client = std::make_shared<client_mailbox>();
  std::shared_ptr<fake_snapshotter_state::script> disk = std::make_shared<fake_snapshotter_state::script>();
  settings with;
  std::vector<probe> supervisors, devices;
  caf::actor scheduler;

  explicit one_scheduler(settings given = {}) : with(given) {
    scheduler_options options;
    options.generation = with.generation;
    options.world_size = with.world_size;
    options.job_id = "job-1";
    options.numeric_class = "class";
    options.members = &members;
    options.client = client;
    options.log = std::make_shared<spdlog::logger>("actors");
    options.window = with.window;
    for (int rank = 0; rank < with.world_size; ++rank) {
      options.supervisors.push_back(supervisors.emplace_back(actors).handle());
      devices.emplace_back(actors);
    }
    scheduler = actors.spawn<actor_of<scheduler_state>>(options);
    if (with.knows_job) know_job();
  }

  void know_job() {
    auto job = std::make_shared<job_definition>();
    job->training = make_plan({schedule_kind::gpipe, with.world_size, 2, with.world_size});
    job->snapshots.cadence.memory_every_steps = with.memory_every_steps;
    job->snapshots.cadence.disk_every_steps = with.disk_every_steps;
    job->snapshots.cadence.disk_interval = with.disk_interval;
    if (with.on_disk) job->snapshots.folder = "/a/folder";
    job->resume = with.resume;
    job->identity = {{"seed", "1"}, {"batch", "64"}};
    job_known known{job, {}, actors.spawn<actor_of<fake_snapshotter_state>>(disk)};
    for (const auto& device : devices) known.devices.push_back(device.handle());
    actors.send(scheduler, known);
  }

  // what nodes say
  void enter(int rank, const call_request& request, std::vector<held_part> parts = {},
             std::vector<call_result> completed = {}, std::uint64_t interrupted_step = 0) {
    actors.send(
        scheduler,
        call_entered{
            with.generation, {rank, 0, std::move(parts)}, request, std::move(completed), interrupted_step});
  }
  void all_enter(const call_request& request, const std::vector<call_result>& completed = {}) {
    for (int rank = 0; rank < with.world_size; ++rank) enter(rank, request, {}, completed);
  }
  void restored(int rank, step_metrics metrics = {}) {
    actors.send(scheduler, node_restored{with.generation, rank, metrics});
  }
  void all_restored() {
    for (int rank = 0; rank < with.world_size; ++rank) restored(rank);
  }
  void done(int device, std::uint64_t step, std::uint32_t call = 0) {
    step_done report;
    report.generation = with.generation;
    report.call = call;
    report.step = step;
    report.device = static_cast<std::uint32_t>(device);
    if (device == with.world_size - 1) report.metrics = metrics_of(step);
    actors.send(scheduler, report);
  }
  void all_done(std::uint64_t step, std::uint32_t call = 0) {
    for (int device = 0; device < with.world_size; ++device) done(device, step, call);
  }
  /// Every stage's copy of `step` is with its owner and with the next rank.
  void all_held(std::uint64_t step) {
    for (int rank = 0; rank < with.world_size; ++rank) {
      held(rank, step, static_cast<std::uint32_t>(rank), part_place::own_memory);
      if (with.world_size > 1)
        held((rank + 1) % with.world_size, step, static_cast<std::uint32_t>(rank), part_place::peer_memory);
    }
  }
  void held(int rank, std::uint64_t step, std::uint32_t stage, part_place place) {
    actors.send(scheduler, part_held{with.generation, rank, {step, stage, with.generation, place}});
  }
  void written(std::uint64_t step, std::uint32_t stage, const std::string& problem = {}) {
    actors.send(scheduler, part_written{with.generation, step, stage, "file", 10, "sum", "host", problem});
  }
  void all_written(std::uint64_t step) {
    for (int rank = 0; rank < with.world_size; ++rank) written(step, static_cast<std::uint32_t>(rank));
  }
  void seen(int rank, std::uint32_t index) {
    actors.send(scheduler, result_seen{with.generation, rank, index});
  }
  void all_seen(std::uint32_t index) {
    for (int rank = 1; rank < with.world_size; ++rank) seen(rank, index);
  }

  /// Up to the moment when steps are granted.
  void begin_training(std::uint64_t target) {
    all_enter(train(0, target));
    all_restored();
  }
  /// A whole call, from its grant on.
  void train_to_end(std::uint64_t first, std::uint64_t target, std::uint32_t call = 0) {
    for (auto step = first; step < target; ++step) {
      all_done(step, call);
      all_held(step + 1);
    }
    all_seen(call);
  }

  // what nodes hear
  grant granted(int device = 0) const { return devices[static_cast<std::size_t>(device)].last<grant>(); }
  std::size_t num_grants() const { return devices[0].all<grant>().size(); }
  std::vector<std::uint64_t> finished(int rank) const {
    std::vector<std::uint64_t> indices;
    for (const auto& one : supervisors[static_cast<std::size_t>(rank)].all<call_finished>())
      indices.push_back(one.result.index);
    return indices;
  }
  call_result result(int rank = 0) const {
    return supervisors[static_cast<std::size_t>(rank)].last<call_finished>().result;
  }
  restore_order order(int rank = 0) const {
    return supervisors[static_cast<std::size_t>(rank)].last<restore_order>();
  }
  std::size_t num_orders() const { return supervisors[0].all<restore_order>().size(); }
  std::vector<recovery_phase> phases() const {
    std::vector<recovery_phase> reported;
    for (const auto& [generation, phase] : members.phases) {
      CHECK(generation == with.generation);
      reported.push_back(phase);
    }
    return reported;
  }

  static call_request train(std::uint32_t index, std::uint64_t target, std::uint32_t source = 0) {
    return {index, call_kind::train, source, target, 0, 0};
  }
  static call_request evaluate(std::uint32_t index, std::uint64_t position, std::uint64_t batches,
                               std::uint32_t source = 1) {
    return {index, call_kind::evaluate, source, position, batches, 2};
  }
  static call_request hash(std::uint32_t index, std::uint64_t position) {
    return {index, call_kind::hash, 0, position, 0, 0};
  }
  static call_request barrier(std::uint32_t index) { return {index, call_kind::barrier, 0, 0, 0, 0}; }
  static step_metrics metrics_of(std::uint64_t step) { return {static_cast<double>(step) + 0.5, 64, 3}; }
};

using numbers = std::vector<std::uint64_t>;
using phases = std::vector<recovery_phase>;
constexpr auto own = part_place::own_memory;
constexpr auto peer = part_place::peer_memory;

call_result finished_training(std::uint32_t index, std::uint64_t steps, std::uint32_t source = 0) {
  call_result result;
  result.index = index;
  result.steps_done = steps;
  result.kind = call_kind::train;
  result.source = source;
  return result;
}

std::vector<std::uint64_t> steps_of(const std::vector<due_copy>& copies) {
  std::vector<std::uint64_t> steps;
  for (const auto& copy : copies) steps.push_back(copy.step);
  return steps;
}

}  // namespace

// ---- entering

TEST_CASE("a call begins only when every process has entered it") {
  one_scheduler here({.world_size = 3});
  here.enter(2, here.train(0, 10));
  here.enter(0, here.train(0, 10));
  CHECK(here.num_orders() == 0);
  here.enter(0, here.train(0, 10));  // again
  CHECK(here.num_orders() == 0);
  here.enter(1, here.train(0, 10));
  CHECK(here.num_orders() == 1);
  CHECK(here.members.failures.empty());
}

TEST_CASE("calls that differ fail the job, naming who does what") {
  one_scheduler here;
  here.enter(0, here.train(0, 10));
  here.enter(1, here.train(0, 20));
  REQUIRE(here.members.failures.size() == 1);
  const auto& cause = here.members.failures[0];
  CHECK(cause.find("rank 0: train (call 0, source 0, step 10") != std::string::npos);
  CHECK(cause.find("rank 1: train (call 0, source 0, step 20") != std::string::npos);
  CHECK(here.num_orders() == 0);
}

TEST_CASE("messages of other generations are ignored") {
  one_scheduler here({.generation = 3});
  for (std::uint64_t other : {2, 4})
    for (int rank : {0, 1})
      here.actors.send(here.scheduler, call_entered{other, {rank, 0, {}}, here.train(0, 10), {}, 0});
  CHECK(here.num_orders() == 0);
  here.all_enter(here.train(0, 10));
  for (std::uint64_t other : {2, 4})
    for (int rank : {0, 1}) here.actors.send(here.scheduler, node_restored{other, rank, {}});
  CHECK(here.num_grants() == 0);
  here.all_restored();
  CHECK(here.num_grants() == 1);
  for (std::uint64_t other : {2, 4})
    for (std::uint32_t device : {0u, 1u}) {
      step_done report;
      report.generation = other;
      report.device = device;
      here.actors.send(here.scheduler, report);
    }
  CHECK(drained(*here.client).empty());
}

TEST_CASE("a barrier needs no job and restores nothing") {
  one_scheduler here({.knows_job = false});
  here.all_enter(here.barrier(0));
  CHECK(here.num_orders() == 0);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("a barrier says how many steps are done although nothing is restored") {
  one_scheduler here({.generation = 2});
  here.all_enter(here.barrier(1), {finished_training(0, 7)});
  CHECK(here.result(1).steps_done == 7);
}

// ---- the end of a call

TEST_CASE("the own node hears of a result last, when all others have confirmed it") {
  one_scheduler here({.world_size = 3});
  here.all_enter(here.barrier(0));
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.finished(2) == numbers{0});
  CHECK(here.finished(0).empty());
  here.seen(2, 0);
  here.seen(2, 0);
  CHECK(here.finished(0).empty());
  here.seen(1, 1);  // of a call that is none yet
  CHECK(here.finished(0).empty());
  here.seen(1, 0);
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE("a confirmation that does not come holds the own node up for a while only") {
  one_scheduler here({.world_size = 3});
  here.all_enter(here.barrier(0));
  here.seen(1, 0);
  here.actors.advance(4s);
  CHECK(here.finished(0).empty());
  here.actors.advance(2s);
  CHECK(here.finished(0) == numbers{0});
  here.seen(2, 0);
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE("the wait for one call's confirmations does not end the next one's") {
  one_scheduler here;
  here.all_enter(here.barrier(0));
  here.actors.advance(3s);
  here.seen(1, 0);
  here.all_enter(here.barrier(1));
  here.actors.advance(3s);  // 6 s after the first, 3 s after the second
  CHECK(here.finished(0) == numbers{0});
  here.actors.advance(3s);
  CHECK(here.finished(0) == numbers{0, 1});
}

TEST_CASE("a process of one hears at once") {
  one_scheduler here({.world_size = 1});
  here.all_enter(here.barrier(0));
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE("a node that missed the end of a call gets its result, and the others wait for it") {
  one_scheduler here({.generation = 2});
  auto before = finished_training(0, 12);
  here.enter(0, here.barrier(1), {}, {before});
  here.enter(1, here.train(0, 12));
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1) == before);
  CHECK(here.finished(0).empty());
  here.enter(1, here.barrier(1), {}, {before});
  CHECK(here.finished(1) == numbers{0, 1});
}

TEST_CASE("it gets the result, too, if it entered before anyone who knows it") {
  one_scheduler here({.generation = 2});
  here.enter(1, here.train(0, 12));
  CHECK(here.finished(1).empty());
  here.enter(0, here.barrier(1), {}, {finished_training(0, 12)});
  CHECK(here.finished(1) == numbers{0});
}

// ---- restoring

TEST_CASE("a fresh job begins from scratch without looking at the disk") {
  one_scheduler here({.on_disk = true});
  here.disk->on_disk.emplace();
  here.all_enter(here.train(0, 10));
  CHECK(here.disk->num_searches == 0);
  for (int rank : {0, 1}) {
    CHECK(here.order(rank).generation == 1);
    CHECK(here.order(rank).plan.from_scratch);
  }
}

TEST_CASE("after a failure every stage goes back to its owner's copy of the newest step that all have") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 10), {{4, 0, 1, own}, {5, 0, 1, own}});
  here.enter(1, here.train(0, 10), {{3, 1, 1, own}, {4, 1, 1, own}});
  CHECK(here.order(1).plan == restore_plan{4, false, {{0, 0, own}, {1, 1, own}}});
}

TEST_CASE("a lost node's stage comes from the peer that kept it") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 10), {{4, 0, 1, own}, {4, 1, 1, peer}});
  here.enter(1, here.train(0, 10));
  CHECK(here.order(0).plan == restore_plan{4, false, {{0, 0, own}, {1, 0, peer}}});
}

TEST_CASE("copies of steps that are rolled back count for nothing any more") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 5), {{4, 0, 1, own}, {4, 1, 1, peer}, {5, 0, 1, own}});
  here.enter(1, here.train(0, 5), {{4, 1, 1, own}, {4, 0, 1, peer}, {5, 0, 1, peer}});
  CHECK(here.order().plan.step == 4);
  here.all_restored();
  here.all_done(4);
  here.held(1, 5, 1, own);
  here.held(0, 5, 1, peer);
  CHECK(here.finished(1).empty());
  here.held(0, 5, 0, own);
  here.held(1, 5, 0, peer);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("when a stage is nowhere in memory and there is no folder, all begin from scratch") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 10), {{4, 0, 1, own}});
  here.enter(1, here.train(0, 10));
  CHECK(here.order().plan.from_scratch);
}

TEST_CASE("when a stage is nowhere in memory, all go back to the snapshot on disk") {
  one_scheduler here({.generation = 2, .on_disk = true});
  here.disk->on_disk.emplace();
  here.disk->on_disk->step = 3;
  here.disk->on_disk->identity = {{"seed", "1"}, {"batch", "64"}};
  here.enter(0, here.train(0, 10), {{4, 0, 1, own}});
  here.enter(1, here.train(0, 10));
  CHECK(here.order().plan == restore_plan{3, false, {{0, 0, part_place::disk}, {1, 1, part_place::disk}}});
  here.all_restored();
  CHECK(here.granted().first_step == 3);
}

TEST_CASE("memory is preferred to the disk") {
  one_scheduler here({.generation = 2, .on_disk = true});
  here.disk->on_disk.emplace();
  here.enter(0, here.train(0, 10), {{4, 0, 1, own}});
  here.enter(1, here.train(0, 10), {{4, 1, 1, own}});
  CHECK(here.disk->num_searches == 0);
  CHECK(here.order().plan.step == 4);
}

TEST_CASE("with an empty folder all begin from scratch, also a job that resumes") {
  for (auto with : {settings{.generation = 2, .on_disk = true}, settings{.on_disk = true, .resume = true}}) {
    one_scheduler here(with);
    here.all_enter(here.train(0, 10));
    CHECK(here.disk->num_searches == 1);
    CHECK(here.order().plan.from_scratch);
  }
}

TEST_CASE("a job that resumes goes on from what is on disk") {
  one_scheduler here({.on_disk = true, .resume = true});
  here.disk->on_disk.emplace();
  here.disk->on_disk->step = 30;
  here.disk->on_disk->identity = {{"seed", "1"}, {"batch", "64"}};
  here.all_enter(here.train(0, 40));
  CHECK(here.order().plan.step == 30);
}

TEST_CASE("a snapshot of a job with other options is refused, naming what differs") {
  one_scheduler here({.on_disk = true, .resume = true});
  here.disk->on_disk.emplace();
  here.disk->on_disk->step = 30;
  here.disk->on_disk->identity = {{"seed", "1"}, {"batch", "32"}};
  here.all_enter(here.train(0, 40));
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("batch is 64, the snapshot has 32") != std::string::npos);
  CHECK(here.members.failures[0].find("seed") == std::string::npos);
  CHECK(here.num_orders() == 0);
}

TEST_CASE("a snapshotter that ends while it looks fails nothing: it starts again with the next generation") {
  one_scheduler here({.on_disk = true, .resume = true});
  here.disk->fatal = true;
  here.all_enter(here.train(0, 40));
  CHECK(here.members.failures.empty());
  CHECK(here.num_orders() == 0);
}

TEST_CASE("a folder that cannot be read fails the job") {
  one_scheduler here({.on_disk = true, .resume = true});
  here.disk->problem = "permission denied";
  here.all_enter(here.train(0, 40));
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("permission denied") != std::string::npos);
}

namespace {

/// On disk is the state of step 20, written by `job_id` in its third call, the first being one of 12 steps.
snapshot_manifest written_by(const std::string& job_id) {
  snapshot_manifest manifest;
  manifest.job_id = job_id;
  manifest.step = 20;
  manifest.identity = {{"seed", "1"}, {"batch", "64"}};
  auto evaluated = finished_training(1, 12);
  evaluated.kind = call_kind::evaluate;
  manifest.calls = finished_calls_text({finished_training(0, 12), evaluated});
  return manifest;
}

}  // namespace

TEST_CASE("processes that were all lost are told again what their calls came to, then go on from the disk") {
  one_scheduler here({.generation = 2, .on_disk = true});
  here.disk->on_disk = written_by("job-1");
  here.all_enter(here.train(0, 12));
  CHECK(here.num_orders() == 0);
  for (int rank : {0, 1}) {
    CHECK(here.finished(rank) == numbers{0});
    CHECK(here.result(rank) == finished_training(0, 12));
  }
  here.all_enter(here.evaluate(1, 12, 3));
  CHECK(here.num_orders() == 0);
  CHECK(here.result(1).kind == call_kind::evaluate);
  CHECK(here.result(1).steps_done == 12);
  here.all_enter(here.train(2, 24));
  CHECK(here.order(1).plan.step == 20);
  CHECK(here.order(1).completed.size() == 2);
  CHECK(here.disk->num_searches == 1);
  here.all_restored();
  CHECK(here.granted().first_step == 20);
  CHECK(here.granted().end_step == 24);
}

TEST_CASE("what another job's calls came to is nothing to one that resumes from its snapshot") {
  one_scheduler here({.on_disk = true, .resume = true});
  here.disk->on_disk = written_by("job-0");
  here.all_enter(here.train(0, 30));
  CHECK(here.finished(1).empty());
  CHECK(here.order().plan.step == 20);
  CHECK(here.order().completed.empty());
}

TEST_CASE("a snapshot tells the results of the calls before it") {
  one_scheduler here({.generation = 2, .window = 8, .on_disk = true});
  here.all_enter(here.train(1, 1), {finished_training(0, 0)});
  here.all_restored();
  here.all_done(0, 1);
  here.all_held(1);
  here.all_written(1);
  REQUIRE(here.disk->committed.size() == 1);
  CHECK(finished_calls_from_text(here.disk->committed[0].calls) ==
        std::vector<call_result>{finished_training(0, 0)});
}

TEST_CASE("nothing is granted before every node is restored") {
  one_scheduler here;
  here.all_enter(here.train(0, 10));
  here.restored(1);
  here.restored(1);
  CHECK(here.num_grants() == 0);
  here.restored(0);
  CHECK(here.num_grants() == 1);
}

TEST_CASE("a generation is restored once") {
  one_scheduler here({.window = 8});
  here.begin_training(2);
  here.train_to_end(0, 2);
  here.all_enter(here.train(1, 4));
  CHECK(here.num_orders() == 1);
  CHECK(here.granted().first_step == 2);
  CHECK(here.granted().end_step == 4);
}

TEST_CASE("a restore order carries the results of all calls that are over") {
  one_scheduler here({.generation = 2});
  std::vector<call_result> completed{finished_training(0, 4)};
  here.enter(0, here.hash(1, 4), {{4, 0, 1, own}}, completed);
  here.enter(1, here.train(0, 4), {{4, 1, 1, own}});
  here.enter(1, here.hash(1, 4), {{4, 1, 1, own}});
  CHECK(here.order(1).completed == completed);
}

// ---- reports of a recovery

TEST_CASE("where nothing is to be made up for, the recovery is over when the first step is granted") {
  one_scheduler here({.generation = 2});
  here.begin_training(10);
  CHECK(here.phases() == phases{recovery_phase::restored, recovery_phase::rebuilt, recovery_phase::replayed});
  here.all_done(0);
  here.all_done(1);
  CHECK(here.phases().size() == 3);
}

TEST_CASE("else it is over when the step that was interrupted is done, and that is told once") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 10), {{3, 0, 1, own}}, {}, 5);
  here.enter(1, here.train(0, 10), {{3, 1, 1, own}}, {}, 4);
  here.restored(0);
  CHECK(here.phases().empty());
  here.restored(1);
  CHECK(here.phases() == phases{recovery_phase::restored, recovery_phase::rebuilt});
  here.all_done(3);
  CHECK(here.phases().size() == 2);
  here.all_done(4);
  CHECK(here.phases() == phases{recovery_phase::restored, recovery_phase::rebuilt, recovery_phase::replayed});
  here.all_done(5);
  CHECK(here.phases().size() == 3);
}

TEST_CASE("a recovery in a barrier is over with the barrier") {
  one_scheduler here({.generation = 2});
  here.all_enter(here.barrier(0));
  CHECK(here.phases() == phases{recovery_phase::restored, recovery_phase::rebuilt, recovery_phase::replayed});
}

// ---- training

TEST_CASE("steps are granted by a window that moves half a window at a time") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  CHECK(here.granted(1).end_step == 4);
  here.all_done(0);
  CHECK(here.num_grants() == 1);
  here.all_done(1);
  CHECK(here.num_grants() == 2);
  CHECK(here.granted(0).end_step == 6);
  CHECK(here.granted(1).end_step == 6);
}

TEST_CASE("the window follows the slowest device") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  for (std::uint64_t step = 0; step < 4; ++step) here.done(0, step);
  CHECK(here.num_grants() == 1);
}

TEST_CASE("the grant ends with the call") {
  one_scheduler here({.window = 4});
  here.begin_training(5);
  here.all_done(0);
  CHECK(here.granted().end_step == 5);  // no half window left
  CHECK(here.num_grants() == 2);
}

TEST_CASE("a grant says when copies are due: every step, or more rarely, and always at the end") {
  one_scheduler each({.window = 8}), third({.window = 8, .memory_every_steps = 3});
  each.begin_training(4);
  third.begin_training(8);
  CHECK(steps_of(each.granted().copies) == numbers{1, 2, 3, 4});
  CHECK(steps_of(third.granted().copies) == numbers{3, 6, 8});
  for (const auto& copy : third.granted().copies) CHECK(copy.to_disk == 0);
}

TEST_CASE("later grants name only copies of steps that were not granted before") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  here.all_done(0);
  here.all_done(1);
  CHECK(steps_of(here.granted().copies) == numbers{5, 6});
}

TEST_CASE("a grant says what is committed: what two nodes hold of every stage") {
  one_scheduler here({.window = 2});
  here.begin_training(100);
  here.all_done(0);
  here.held(0, 1, 0, own);
  here.held(1, 1, 0, peer);
  here.held(1, 1, 1, own);
  here.all_done(1);
  CHECK(here.granted().committed_step == 0);
  here.held(0, 1, 1, peer);
  here.all_done(2);
  CHECK(here.granted().committed_step == 1);
}

TEST_CASE("no further steps are granted while many copies are uncommitted, and then they are") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  for (std::uint64_t step = 0; step < 20; ++step) here.all_done(step);
  auto stopped_at = here.granted().end_step;
  CHECK(stopped_at < 20);
  here.all_held(stopped_at);
  CHECK(here.granted().end_step > stopped_at);
}

TEST_CASE("each step is told to the user and the agent with its metrics") {
  one_scheduler here;
  here.begin_training(10);
  here.all_done(0);
  here.all_done(1);
  auto events = drained(*here.client);
  REQUIRE(events.size() == 2);
  auto second = std::get<step_progress>(events[1]);
  CHECK(second.step == 2);
  CHECK(second.target_step == 10);
  CHECK(second.metrics == one_scheduler::metrics_of(1));
  REQUIRE(here.members.progress_reports.size() == 2);
  CHECK(here.members.progress_reports[1] == job_progress{1, 2, 10, 1.5 / 64});
}

TEST_CASE("training is over when its last state is committed") {
  one_scheduler here({.window = 8});
  here.begin_training(2);
  here.all_done(0);
  here.all_done(1);
  CHECK(here.finished(1).empty());
  here.held(0, 2, 0, own);
  here.held(1, 2, 0, peer);
  here.held(1, 2, 1, own);
  CHECK(here.finished(1).empty());
  here.held(0, 2, 1, peer);
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1).steps_done == 2);
  CHECK(here.result(1).metrics == one_scheduler::metrics_of(1));
  CHECK(here.result(1).kind == call_kind::train);
}

TEST_CASE("the copy may be committed before the step is reported") {
  one_scheduler here({.window = 8});
  here.begin_training(1);
  here.all_held(1);
  CHECK(here.finished(1).empty());
  here.all_done(0);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("in a world of one process its own copy is enough") {
  one_scheduler here({.world_size = 1});
  here.begin_training(1);
  here.all_done(0);
  CHECK(here.finished(0).empty());
  here.held(0, 1, 0, own);
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE("a call whose steps are all done ends with the metrics of the last one") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 4), {{4, 0, 1, own}});
  here.enter(1, here.train(0, 4), {{4, 1, 1, own}});
  here.restored(0);
  here.restored(1, {3.5, 64, 3});
  CHECK(here.num_grants() == 0);
  CHECK(here.result(1).metrics == step_metrics{3.5, 64, 3});
  CHECK(here.result(1).steps_done == 4);
}

TEST_CASE(
    "steps of earlier calls are made up for with the samples they had, before the call goes on with its "
    "own") {
  one_scheduler here({.generation = 2, .window = 8});
  here.all_enter(here.train(2, 6, 5), {finished_training(0, 2, 3), finished_training(1, 4, 4)});
  CHECK(here.order().plan.from_scratch);
  here.all_restored();
  CHECK(here.granted().call.source == 3);
  CHECK(here.granted().first_step == 0);
  CHECK(here.granted().end_step == 2);
  here.train_to_end(0, 2, 2);
  CHECK(here.granted().call.source == 4);
  CHECK(here.granted().first_step == 2);
  CHECK(here.granted().end_step == 4);
  here.train_to_end(2, 4, 2);
  CHECK(here.granted().call.source == 5);
  CHECK(here.granted().end_step == 6);
  here.train_to_end(4, 6, 2);
  CHECK(here.finished(0) == numbers{2});
  CHECK(here.result().metrics == one_scheduler::metrics_of(5));
}

// ---- evaluation and hash

TEST_CASE("evaluation sums the metrics of all its batches, and grants no copies") {
  one_scheduler here({.window = 8});
  here.all_enter(here.evaluate(0, 0, 2));
  here.all_restored();
  CHECK(here.granted().call.kind == call_kind::evaluate);
  CHECK(here.granted().call.source == 1);
  CHECK(here.granted().end_step == 2);
  CHECK(here.granted().copies.empty());
  here.all_done(0);
  CHECK(here.finished(1).empty());
  here.all_done(1);
  CHECK(here.result(1).metrics == step_metrics{0.5 + 1.5, 128, 6});
  CHECK(drained(*here.client).empty());
}

TEST_CASE("an evaluation of nothing ends at once") {
  one_scheduler here;
  here.all_enter(here.evaluate(0, 0, 0));
  here.all_restored();
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1).metrics == step_metrics{});
}

TEST_CASE("steps that an evaluation must make up for are no part of its result") {
  one_scheduler here({.generation = 2, .window = 8});
  here.all_enter(here.evaluate(1, 2, 1), {finished_training(0, 2)});
  here.all_restored();
  CHECK(here.granted().call.kind == call_kind::train);
  here.all_done(0, 1);
  here.all_done(1, 1);
  here.all_held(2);
  CHECK(here.granted().call.kind == call_kind::evaluate);
  here.all_done(0, 1);
  CHECK(here.result(1).metrics == one_scheduler::metrics_of(0));
  CHECK(here.result(1).steps_done == 2);
  CHECK(here.result(1).timing == step_timing{});
  CHECK(here.result(1).last_step.empty());
}

TEST_CASE("the hash is over the parameters of all stages, whatever the order they come in") {
  one_scheduler here({.world_size = 2});
  here.all_enter(here.hash(0, 0));
  here.all_restored();
  CHECK(here.granted().call.kind == call_kind::hash);
  packed_state_pool pool;
  named_tensor first{"0.weight", tensor::full({3}, 1)}, second{"1.weight", tensor::full({2}, 2)};
  auto arrives = [&](std::uint64_t generation, std::uint32_t call, std::uint32_t stage,
                     const named_tensor& value) {
    here.actors.send(here.scheduler, parameters_arrived{generation, call, stage, pack_state({value}, pool)});
  };
  arrives(1, 0, 1, second);
  arrives(2, 0, 0, first);  // of another generation
  arrives(1, 1, 0, first);  // for another call
  CHECK(here.finished(1).empty());
  arrives(1, 0, 0, first);
  CHECK(here.result(1).weights_sha256 == weights_sha256({first, second}));
}

// ---- disk

TEST_CASE("with a folder the last step of a call, and those of the cadence, are due on disk") {
  one_scheduler here({.window = 8, .on_disk = true, .disk_every_steps = 3});
  here.begin_training(5);
  numbers on_disk;
  for (const auto& copy : here.granted().copies)
    if (copy.to_disk) on_disk.push_back(copy.step);
  CHECK(on_disk == numbers{3, 5});
}

TEST_CASE("time since the last snapshot on disk goes on through generations, as the nodes remember it") {
  one_scheduler here({.generation = 2, .window = 8, .on_disk = true, .disk_interval = 60s});
  for (auto [rank, since] : {std::pair(0, 3.0), {1, 50.0}})
    here.actors.send(here.scheduler, call_entered{2, {rank, since, {}}, here.train(0, 100), {}, 0});
  for (int rank : {0, 1}) CHECK(here.order(rank).since_disk_s == 50);
  here.actors.advance(11s);
  here.all_restored();
  REQUIRE_FALSE(here.granted().copies.empty());
  CHECK(here.granted().copies[0].step == 1);
  CHECK(here.granted().copies[0].to_disk == 1);
  CHECK(here.granted().copies[1].to_disk == 0);
}

TEST_CASE("with a folder a call is over when its last state is on disk") {
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
  CHECK(manifest.parts[1] == manifest_part{1, "file", 10, "sum", "host"});
}

TEST_CASE("a part that cannot be written does not hold the call up") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.written(1, 0, "disk full");
  CHECK(here.finished(1) == numbers{0});
  here.written(1, 1);
  CHECK(here.disk->committed.empty());
}

TEST_CASE("a manifest that cannot be written does not hold the call up") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.disk->problem = "disk full";
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.all_written(1);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("a snapshotter that does not answer holds the call up for a while only") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.disk->silent = true;
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.all_written(1);
  CHECK(here.finished(1).empty());
  here.actors.advance(61s);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("no further steps are granted while two snapshots are on their way to disk, and then they are") {
  one_scheduler here({.window = 2, .on_disk = true, .disk_every_steps = 1});
  here.begin_training(10);
  CHECK(here.granted().end_step == 2);
  here.all_done(0);
  here.all_done(1);
  here.all_held(2);
  CHECK(here.num_grants() == 1);
  here.all_written(1);
  CHECK(here.num_grants() == 2);
  CHECK(here.granted().end_step == 4);
}

TEST_CASE("parts of other generations count for nothing") {
  one_scheduler here({.generation = 3, .window = 8, .on_disk = true});
  here.begin_training(1);
  here.all_done(0);
  for (std::uint64_t other : {2, 4})
    for (int rank : {0, 1}) {
      auto stage = static_cast<std::uint32_t>(rank);
      here.actors.send(here.scheduler, part_held{other, rank, {1, stage, other, own}});
      here.actors.send(here.scheduler, part_held{other, 1 - rank, {1, stage, other, peer}});
      here.actors.send(here.scheduler, part_written{other, 1, stage, "f", 1, "c", "h", ""});
    }
  CHECK(here.disk->committed.empty());
  CHECK(here.finished(1).empty());
}
