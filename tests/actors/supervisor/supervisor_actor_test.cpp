#include "troupe/supervisor/supervisor_actor.hpp"

#include <spdlog/logger.h>

#include <catch2/catch_test_macros.hpp>

#include "actors/virtual_actors.hpp"
#include "support/drained.hpp"
#include "support/fake_program.hpp"
#include "support/recording_membership.hpp"
#include "support/recording_transport.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/link/wire_table.hpp"
#include "troupe/program/packed_state.hpp"
#include "troupe/scheduler/messages.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// One node of a job of two, with a device each, and a stage each unless told otherwise. The other node is
/// what the test says.
struct one_node {
  virtual_actors actors;
  int rank;
  int devices_per_rank = 1;
  recording_transport out;
  recording_membership members;
  inbound_gate gate;
  stage_directory directory;
  fault_plan no_faults;
  trace_recorder trace{0, 64};
  std::shared_ptr<std::atomic<std::uint64_t>> fenced = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<client_mailbox> client = std::make_shared<client_mailbox>();
  std::shared_ptr<fake_model> model = std::make_shared<fake_model>();
  caf::actor supervisor;

  explicit one_node(int with_rank = 1, int world_size = 2, int num_stages = 2)
      : rank(with_rank), out(with_rank) {
    model->num_stages = num_stages;
    supervisor_options options;
    options.rank = rank;
    options.world_size = world_size;
    options.job_id = "job-1";
    options.host = "here";
    options.numeric_class = "class";
    options.out = &out;
    options.members = &members;
    options.gate = &gate;
    options.directory = &directory;
    options.faults = &no_faults;
    options.trace = &trace;
    options.fenced = fenced;
    options.client = client;
    options.log = std::make_shared<spdlog::logger>("actors");
    options.threads = child_threads::shared;
    supervisor = actors.spawn<actor_of<supervisor_state>>(options);
  }
  ~one_node() {
    gate.close();
    directory.close();
  }

  // what the user does
  void define() {
    auto job = std::make_shared<job_definition>();
    job->make_program = fake_programs(model);
    job->training = make_plan({schedule_kind::gpipe, model->num_stages, 2, 2 * devices_per_rank});
    job->devices_per_rank = devices_per_rank;
    actors.send(supervisor, define_job{job});
    actors.send(supervisor, add_source{std::make_shared<fake_source>(0)});
  }
  void enter(std::uint32_t index, call_kind kind = call_kind::train, std::uint64_t target = 10) {
    actors.send(supervisor, enter_call{{index, kind, 0, target, 0, 0}});
  }

  // what the agent says
  void fence(std::uint64_t generation) {
    fenced->store(generation);
    actors.send(supervisor, fence_raised{generation, {}});
  }
  void view(std::uint64_t generation) {
    membership_view formed{generation, {}};
    for (int member_rank : {0, 1}) {
      member one;
      one.rank = member_rank;
      one.address = recording_transport::address_of(member_rank, generation);
      formed.members.push_back(one);
    }
    actors.send(supervisor, view_formed{formed});
  }

  // what the other node says
  template <class Message>
  void hear(std::uint64_t generation, const actor_name& to, const Message& message) {
    gate.deliver(generation, *encode_message(to, caf::make_message(message)));
    actors.run();
  }
  void restore(std::uint64_t generation, const restore_plan& plan = {},
               const std::vector<call_result>& completed = {}) {
    hear(generation, {actor_role::supervisor, 0}, restore_order{generation, plan, completed});
  }
  void finish(std::uint64_t generation, const call_result& result) {
    hear(generation, {actor_role::supervisor, 0}, call_finished{generation, result});
  }
  void give(std::uint64_t generation, std::uint64_t first, std::uint64_t end,
            std::vector<due_copy> copies = {}, std::uint32_t call = 0) {
    hear(generation, {actor_role::device, 1},
         grant{generation, {call, call_kind::train, 0, 100, 0, 0}, first, end, std::move(copies), 0});
  }
  void activations_come(std::uint64_t generation, std::uint64_t step, std::uint32_t call = 0) {
    for (std::uint32_t microbatch : {0u, 1u})
      directory.deliver({generation, step, call, 1, microbatch, tensor_role::activation},
                        tensor::full({2, 1}, 1));
    actors.run();
  }
  void part_comes(std::uint64_t generation, std::uint64_t step, std::uint32_t stage, const tensor& packed) {
    directory.deliver({generation, step, 0, stage, 0, tensor_role::snapshot_part}, packed);
    actors.run();
  }

  // what the other node hears
  template <class Message>
  std::vector<Message> sent() const {
    std::vector<Message> found;
    for (const auto& frame : out.frames) {
      auto message = decode_message(frame.body);
      if (message.content.match_elements<Message>()) found.push_back(message.content.get_as<Message>(0));
    }
    return found;
  }
  /// The last state copy that went to the peer.
  recording_transport::sent_tensor last_part() const {
    for (auto sent = out.tensors.rbegin(); sent != out.tensors.rend(); ++sent)
      if (sent->tag.role == tensor_role::snapshot_part) return *sent;
    throw std::runtime_error("no part was sent");
  }

  /// A job on its first generation, its stages made, its devices waiting for a grant.
  void begin() {
    define();
    view(1);
    enter(0);
    restore(1);
  }
  /// Steps of generation 1, with a copy after each.
  void train(std::uint64_t num_steps) {
    std::vector<due_copy> copies;
    for (std::uint64_t step = 1; step <= num_steps; ++step) copies.push_back({step, 0});
    give(1, 0, num_steps, copies);
    for (std::uint64_t step = 0; step < num_steps; ++step) activations_come(1, step);
  }
  void advance(std::chrono::nanoseconds time) { actors.advance(time); }
  std::vector<std::string> failures_told() {
    std::vector<std::string> causes;
    for (const auto& event : drained(*client))
      if (auto* failed = std::get_if<job_failure>(&event)) causes.push_back(failed->cause);
    return causes;
  }
  std::vector<std::uint32_t> results_told() {
    std::vector<std::uint32_t> indices;
    for (const auto& event : drained(*client))
      if (auto* result = std::get_if<call_result>(&event)) indices.push_back(result->index);
    return indices;
  }
};

tensor packed_with(float weight, std::uint64_t steps, int stage = 1) {
  packed_state_pool pool;
  auto name = std::to_string(stage);
  return pack_state({{name + ".weight", tensor::full({1}, weight)},
                     {name + ".moment", tensor::zeros({1})},
                     {name + ".steps", tensor::full({1}, static_cast<float>(steps))}},
                    pool);
}

restore_plan plan_of(std::uint64_t step, restore_source first, restore_source second) {
  return {step, false, {first, second}};
}
restore_source from(std::uint32_t stage, std::int32_t rank, part_place place) { return {stage, rank, place}; }

constexpr auto own = part_place::own_memory;
constexpr auto peer = part_place::peer_memory;

/// Everyone's own copy.
restore_plan own_plan(std::uint64_t step) { return plan_of(step, from(0, 0, own), from(1, 1, own)); }

call_result result_of(std::uint32_t index) {
  call_result result;
  result.index = index;
  return result;
}

std::vector<std::uint64_t> steps_done(const one_node& node, std::uint64_t generation) {
  std::vector<std::uint64_t> steps;
  for (const auto& done : node.sent<step_done>())
    if (done.generation == generation) steps.push_back(done.step);
  return steps;
}

using numbers = std::vector<std::uint64_t>;
using indices = std::vector<std::uint32_t>;

}  // namespace

// ---- a life

TEST_CASE("with its first view a node connects and says which call it is in") {
  one_node here;
  here.define();
  here.enter(3);
  CHECK(here.out.frames.empty());
  here.view(1);
  REQUIRE(here.out.connected.size() == 1);
  CHECK(here.out.connected[0].first == 1);
  CHECK(here.out.connected[0].second.at(0) == recording_transport::address_of(0, 1));
  CHECK(here.out.connected[0].second.at(1) == recording_transport::address_of(1, 1));
  auto entered = here.sent<call_entered>();
  REQUIRE(entered.size() == 1);
  CHECK(entered[0].generation == 1);
  CHECK(entered[0].inventory.rank == 1);
  CHECK(entered[0].inventory.parts.empty());
  CHECK(entered[0].request.index == 3);
  CHECK(here.out.frames[0].to_rank == 0);
}

TEST_CASE("a call that is entered after the view is announced at once, also without a job") {
  one_node here;
  here.view(1);
  here.enter(0, call_kind::barrier);
  REQUIRE(here.sent<call_entered>().size() == 1);
  CHECK(here.sent<call_entered>()[0].request.kind == call_kind::barrier);
}

TEST_CASE("from scratch to the first step") {
  one_node here;
  here.begin();
  auto restored = here.sent<node_restored>();
  REQUIRE(restored.size() == 1);
  CHECK(restored[0].generation == 1);
  CHECK(restored[0].rank == 1);
  here.train(1);
  CHECK(here.model->calls ==
        std::vector<std::string>{"N1", "F1.0", "F1.1", "I1.0", "W1.0", "I1.1", "W1.1", "A1@0"});
  CHECK(steps_done(here, 1) == numbers{0});
  CHECK(here.last_part().to_rank == 0);
  CHECK(here.last_part().tag == tensor_tag{1, 1, 0, 1, 0, tensor_role::snapshot_part});
  CHECK(here.sent<part_held>().back().part == held_part{1, 1, 1, own});
}

TEST_CASE("the end of a call is told to the user and confirmed; the next call is another one") {
  one_node here;
  here.begin();
  here.finish(1, result_of(0));
  CHECK(here.results_told() == indices{0});
  REQUIRE(here.sent<result_seen>().size() == 1);
  CHECK(here.sent<result_seen>()[0].rank == 1);
  CHECK(here.sent<result_seen>()[0].index == 0);
  here.finish(1, result_of(0));  // again: confirmed again, told once
  CHECK(here.results_told().empty());
  CHECK(here.sent<result_seen>().size() == 2);
  here.enter(1);
  REQUIRE(here.sent<call_entered>().size() == 2);
  CHECK(here.sent<call_entered>()[1].completed == std::vector<call_result>{result_of(0)});
}

TEST_CASE("a call that its user left ends before the user's next one begins") {
  one_node here;
  here.begin();
  here.enter(1);
  CHECK(here.sent<call_entered>().size() == 1);
  here.fence(2);
  here.view(2);
  CHECK(here.sent<call_entered>().back().request.index == 0);
  here.finish(2, result_of(0));
  CHECK(here.sent<call_entered>().back().request.index == 1);
  here.finish(2, result_of(1));
  CHECK(here.results_told() == indices{0, 1});
}

TEST_CASE("the result of a call that the user is not in is not told") {
  one_node here;
  here.begin();
  here.finish(1, result_of(2));
  CHECK(here.results_told().empty());
}

TEST_CASE("a user who comes late to a call that is over has its result at once") {
  one_node here;
  here.define();
  here.view(2);
  here.enter(0);
  here.restore(2, {}, {result_of(0), result_of(1)});
  here.finish(2, result_of(0));
  CHECK(here.results_told() == indices{0});
  auto frames = here.out.frames.size();
  here.enter(1);
  CHECK(here.results_told() == indices{1});
  CHECK(here.out.frames.size() == frames);
}

TEST_CASE("the end of the job and recoveries are told to the user") {
  one_node here;
  recovery_report report;
  report.generation = 5;
  here.actors.send(here.supervisor, recovery_done{report});
  here.actors.send(here.supervisor, job_ended{"no more"});
  auto events = drained(*here.client);
  REQUIRE(events.size() == 2);
  CHECK(std::get<recovery_report>(events[0]).generation == 5);
  CHECK(std::get<job_failure>(events[1]).cause == "no more");
}

// ---- fences

TEST_CASE("a fence stops the devices, then is acknowledged with the node's new address") {
  one_node here;
  here.begin();
  here.give(1, 0, 3);
  here.fence(2);
  CHECK(here.out.begun == numbers{2});
  REQUIRE(here.members.acknowledged.size() == 1);
  CHECK(here.members.acknowledged[0].first == 2);
  CHECK(here.members.acknowledged[0].second == recording_transport::address_of(1, 2));
  here.activations_come(1, 0);
  CHECK(here.model->calls == std::vector<std::string>{"N1"});
}

TEST_CASE("a node without a job acknowledges at once, also before its first view") {
  one_node here;
  here.fence(2);
  CHECK(here.members.acknowledged.size() == 1);
  here.view(2);
  here.enter(0, call_kind::barrier);
  CHECK(here.sent<call_entered>().back().generation == 2);
}

TEST_CASE(
    "after a failure the node says what it holds and which step was interrupted, and goes on from its own "
    "copy") {
  one_node here;
  here.begin();
  here.train(3);
  here.give(1, 3, 5);  // step 3 begins, and its inputs do not come
  here.fence(2);
  here.view(2);
  auto entered = here.sent<call_entered>().back();
  CHECK(entered.generation == 2);
  CHECK(entered.interrupted_step == 4);
  CHECK(entered.inventory.parts == std::vector<held_part>{{1, 1, 1, own}, {2, 1, 1, own}, {3, 1, 1, own}});
  here.restore(2, own_plan(2));
  CHECK(here.sent<node_restored>().back().generation == 2);
  CHECK(here.sent<node_restored>().back().metrics.num_samples == 4);
  here.give(2, 2, 3);
  here.activations_come(2, 2);
  CHECK(steps_done(here, 2) == numbers{2});
}

TEST_CASE("an old fence is ignored") {
  one_node here;
  here.begin();
  here.fence(3);
  here.fence(2);
  here.fence(3);
  CHECK(here.members.acknowledged.size() == 1);
}

TEST_CASE("an old view is ignored, and one that comes before the devices have stopped") {
  one_node here;
  here.begin();
  here.fence(3);
  here.view(2);
  CHECK(here.out.connected.size() == 1);
  here.view(3);
  CHECK(here.out.connected.size() == 2);
}

TEST_CASE("how long ago the last snapshot was is told to the next generation, and learned from it") {
  one_node here;
  here.begin();
  here.advance(20s);
  here.fence(2);
  here.view(2);
  CHECK(here.sent<call_entered>().back().inventory.since_disk_s == 20);
  here.hear(2, {actor_role::supervisor, 0}, restore_order{2, {}, {}, 45});
  here.advance(5s);
  here.fence(3);
  here.view(3);
  CHECK(here.sent<call_entered>().back().inventory.since_disk_s == 50);
}

TEST_CASE("a fence in the middle of a restore begins it anew") {
  one_node here;
  here.begin();
  here.train(2);
  here.fence(2);
  here.view(2);
  here.restore(2, plan_of(2, from(0, 0, own), from(1, 0, peer)));  // the peer's copy is still to come
  here.fence(3);
  CHECK(here.members.acknowledged.back().first == 3);
  here.view(3);
  here.part_comes(2, 2, 1, packed_with(7, 2));  // of the generation that is over
  CHECK(here.sent<node_restored>().back().generation == 1);
  here.restore(3, own_plan(1));
  CHECK(here.sent<node_restored>().back().generation == 3);
  here.give(3, 1, 2);
  here.activations_come(3, 1);
  CHECK(steps_done(here, 3) == numbers{1});
}

TEST_CASE("a restore order of another generation, or while a fence is up, is ignored") {
  one_node here;
  here.begin();
  here.actors.send(here.supervisor, restore_order{2, {}, {}});
  here.fence(2);
  here.actors.send(here.supervisor, restore_order{2, {}, {}});
  CHECK(here.sent<node_restored>().size() == 1);
}

TEST_CASE(
    "two fences in a row are one to the devices' work: the step that was interrupted is not forgotten") {
  one_node here;
  here.begin();
  here.train(2);
  here.give(1, 2, 4);
  here.fence(2);
  here.fence(3);
  CHECK(here.members.acknowledged.back().first == 3);
  here.view(3);
  CHECK(here.sent<call_entered>().back().generation == 3);
  CHECK(here.sent<call_entered>().back().interrupted_step == 3);
}

namespace {

caf::scheduled_actor* device_with_something_to_do(one_node& here) {
  for (auto* job : here.actors.coordinator().jobs)
    if (auto* actor = dynamic_cast<caf::scheduled_actor*>(job);
        actor && actor->name() == std::string("device"))
      return actor;
  return nullptr;
}

}  // namespace

TEST_CASE("a fence is acknowledged when all devices have stopped for it, not when one has stopped for two") {
  one_node here(1, 2, 4);
  here.devices_per_rank = 2;
  here.begin();
  auto& coordinator = here.actors.coordinator();
  for (std::uint64_t generation : {2, 3}) caf::anon_send(here.supervisor, fence_raised{generation, {}});
  while (!device_with_something_to_do(here)) REQUIRE(coordinator.try_run_once());
  auto* slow = device_with_something_to_do(here);
  coordinator.run_jobs_filtered(
      [slow](caf::resumable* job) { return dynamic_cast<caf::scheduled_actor*>(job) != slow; });
  CHECK(here.members.acknowledged.empty());
  here.actors.run();
  REQUIRE(here.members.acknowledged.size() == 1);
  CHECK(here.members.acknowledged[0].first == 3);
}

TEST_CASE(
    "a second fence before the devices have stopped for the first is acknowledged once, for the second") {
  one_node here;
  here.begin();
  here.fenced->store(3);
  caf::anon_send(here.supervisor, fence_raised{2, {}});
  caf::anon_send(here.supervisor, fence_raised{3, {}});
  here.actors.run();
  REQUIRE(here.members.acknowledged.size() == 1);
  CHECK(here.members.acknowledged[0].first == 3);
}

TEST_CASE("what was interrupted is forgotten when its recovery is over, and not when an older one is") {
  for (std::uint64_t over : {1, 2}) {
    one_node here;
    here.begin();
    here.give(1, 0, 4);
    here.fence(2);
    here.view(2);
    CHECK(here.sent<call_entered>().back().interrupted_step == 1);
    here.restore(2);
    recovery_report report;
    report.generation = over;
    here.actors.send(here.supervisor, recovery_done{report});
    here.fence(3);
    here.view(3);
    CHECK(here.sent<call_entered>().back().interrupted_step == (over == 2 ? 0u : 1u));
  }
}

TEST_CASE("a call's end that comes after a fence is not told; the next generation tells it") {
  one_node here;
  here.begin();
  here.fence(2);
  here.actors.send(here.supervisor, call_finished{1, result_of(0)});
  CHECK(here.results_told().empty());
  here.view(2);
  here.finish(2, result_of(0));
  CHECK(here.results_told() == indices{0});
}

TEST_CASE("frames of the new generation that come before the view wait for it") {
  one_node here;
  here.begin();
  here.fence(2);
  here.restore(2);
  CHECK(here.sent<node_restored>().size() == 1);
  here.view(2);
  CHECK(here.sent<node_restored>().size() == 2);
}

// ---- states of lost stages

TEST_CASE("a state from a peer may come after the order to restore it") {
  one_node here;
  here.define();
  here.view(2);
  here.enter(0);
  here.restore(2, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<node_restored>().empty());
  here.part_comes(2, 4, 1, packed_with(7, 4));
  CHECK(here.sent<node_restored>().size() == 1);
  here.give(2, 4, 5);
  here.activations_come(2, 4);
  CHECK(steps_done(here, 2) == numbers{4});
}

TEST_CASE("or before") {
  one_node here;
  here.define();
  here.view(2);
  here.enter(0);
  here.part_comes(2, 4, 1, packed_with(7, 4));
  CHECK(here.sent<node_restored>().empty());
  here.restore(2, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<node_restored>().size() == 1);
}

TEST_CASE("or even before the view") {
  one_node here;
  here.define();
  here.view(1);
  here.enter(0);
  here.fence(2);
  here.part_comes(2, 4, 1, packed_with(7, 4));
  here.view(2);
  here.restore(2, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<node_restored>().size() == 1);
}

TEST_CASE("a state from an older generation is not used") {
  one_node here;
  here.define();
  here.view(2);
  here.enter(0);
  here.part_comes(2, 4, 1, packed_with(7, 4));
  here.fence(3);
  here.view(3);
  here.restore(3, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<node_restored>().empty());
  here.part_comes(3, 4, 1, packed_with(8, 4));
  CHECK(here.sent<node_restored>().size() == 1);
}

TEST_CASE("and does not take the place of a newer one") {
  one_node here;
  here.define();
  here.view(3);
  here.enter(0);
  here.part_comes(3, 4, 1, packed_with(8, 4));
  here.part_comes(2, 4, 1, packed_with(7, 4));
  here.restore(3, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<node_restored>().size() == 1);
}

TEST_CASE("nor is it because another stage's has come anew") {
  one_node here(1, 2, 4);
  here.define();
  here.view(2);
  here.enter(0);
  here.part_comes(2, 4, 2, packed_with(7, 4, 2));
  here.fence(3);
  here.view(3);
  here.part_comes(3, 4, 3, packed_with(7, 4, 3));
  here.restore(3, {4, false, {from(0, 0, own), from(1, 0, own), from(2, 0, peer), from(3, 0, peer)}});
  CHECK(here.sent<node_restored>().empty());
  here.part_comes(3, 4, 2, packed_with(8, 4, 2));
  CHECK(here.sent<node_restored>().size() == 1);
}

TEST_CASE("a replica is announced, and sent to the host of the stage that was lost") {
  one_node here;
  here.begin();
  here.train(1);
  here.part_comes(1, 1, 0, packed_with(7, 1, 0));  // the other node's stage
  CHECK(here.sent<part_held>().back().part == held_part{1, 0, 1, peer});
  here.fence(2);
  here.view(2);
  CHECK(here.sent<call_entered>().back().inventory.parts ==
        std::vector<held_part>{{1, 1, 1, own}, {1, 0, 1, peer}});
  here.restore(2, plan_of(1, from(0, 1, peer), from(1, 1, own)));
  bool found = false;
  for (const auto& sent : here.out.tensors) {
    if (sent.tag != tensor_tag{2, 1, 0, 0, 0, tensor_role::snapshot_part}) continue;
    found = true;
    CHECK(sent.to_rank == 0);
    CHECK(unpack_state(sent.value)[0].value.values<float>()[0] == 7);
  }
  CHECK(found);
  CHECK(here.sent<node_restored>().back().generation == 2);
}

TEST_CASE("a copy that is ordered and not there fails the job") {
  one_node here;
  here.begin();
  here.restore(1, own_plan(9));
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("stage 1 holds no copy of step 9") != std::string::npos);
}

TEST_CASE("so does a replica that is not there, and a snapshot") {
  one_node here;
  here.begin();
  here.restore(1, plan_of(9, from(0, 1, peer), from(1, 0, peer)));
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("no replica of stage 0 at step 9") != std::string::npos);
  here.restore(1, plan_of(9, from(0, 0, part_place::disk), from(1, 1, part_place::disk)));
  REQUIRE(here.members.failures.size() == 2);
  CHECK(here.members.failures[1].find("snapshot") != std::string::npos);
}

// ---- failures of actors

namespace {

/// The device's next action fails.
void fail_device(one_node& here, std::uint64_t generation, std::uint64_t step) {
  here.model->before = [](const std::string& call) {
    if (call.starts_with("F")) throw std::runtime_error("out of luck");
  };
  here.give(generation, step, step + 1);
  here.activations_come(generation, step);
  here.model->before = [](const std::string&) {};
}

}  // namespace

TEST_CASE("a device that fails is started again with the next generation, which its supervisor asks for") {
  one_node here;
  here.begin();
  here.train(1);
  fail_device(here, 1, 1);
  here.advance(1ms);
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0].first == 1);
  CHECK(here.members.requests[0].second == "device 1 on rank 1 failed: out of luck");
  here.fence(2);
  CHECK(here.members.acknowledged.back().first == 2);
  here.view(2);
  here.restore(2, own_plan(1));
  CHECK(here.sent<node_restored>().back().generation == 2);
  here.give(2, 1, 2);
  here.activations_come(2, 1);
  CHECK(steps_done(here, 2) == numbers{1});
  CHECK(here.members.failures.empty());
}

TEST_CASE("a device that fails in an unrelated generation change is started again with it") {
  one_node here;
  here.begin();
  here.train(1);
  fail_device(here, 1, 1);
  here.fence(2);
  here.view(2);
  here.restore(2, own_plan(1));
  here.give(2, 1, 2);
  here.activations_come(2, 1);
  CHECK(steps_done(here, 2) == numbers{1});
  here.advance(1ms);
  // The request names the generation that failed, so that the agent can see that it is over.
  for (const auto& [generation, cause] : here.members.requests) CHECK(generation == 1);
}

TEST_CASE("restarts wait longer each time, and too many of them fail the job with the cause") {
  one_node here;
  here.begin();
  for (std::uint64_t generation = 1; generation <= 4; ++generation) {
    fail_device(here, generation, 0);
    if (generation == 4) break;
    here.advance(1ms);
    CHECK(here.members.requests.size() == (generation == 1 ? 1 : generation - 1));
    here.advance(200ms);
    CHECK(here.members.requests.size() == generation);
    here.fence(generation + 1);
    here.view(generation + 1);
    here.restore(generation + 1);
  }
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("device 1 on rank 1 failed: out of luck") != std::string::npos);
  CHECK(here.members.failures[0].find("3 restarts") != std::string::npos);
  CHECK(here.members.requests.size() == 3);
}

TEST_CASE("bad input fails the job at once: it would be as bad in the next generation") {
  one_node here;
  here.begin();
  here.model->before = [](const std::string& call) {
    if (call.starts_with("F")) throw bad_input("label 11 of 10 classes");
  };
  here.give(1, 0, 1);
  here.activations_come(1, 0);
  here.advance(5s);
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0] == "device 1 on rank 1 failed: label 11 of 10 classes");
  CHECK(here.members.requests.empty());
}

TEST_CASE("a stage that fails is started again, without copies, and gets its state from the peer") {
  one_node here;
  here.begin();
  here.train(1);
  here.out.before_tensor = [](const tensor_tag& tag) {
    if (tag.role == tensor_role::snapshot_part) throw std::runtime_error("no buffers");
  };
  here.give(1, 1, 2, {{2, 0}});
  here.activations_come(1, 1);
  here.out.before_tensor = [](const tensor_tag&) {};
  here.advance(1ms);
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0].second == "stage 1 on rank 1 failed: no buffers");
  here.fence(2);
  here.view(2);
  CHECK(here.sent<call_entered>().back().inventory.parts.empty());
  here.restore(2, plan_of(1, from(0, 0, own), from(1, 0, peer)));
  here.part_comes(2, 1, 1, packed_with(7, 1));
  CHECK(here.sent<node_restored>().back().generation == 2);
  CHECK(here.members.failures.empty());
}

TEST_CASE(
    "a stage that was lost before it could be restored waits for the next generation, and fails nothing") {
  one_node here;
  here.begin();
  here.train(1);
  here.out.before_tensor = [](const tensor_tag& tag) {
    if (tag.role == tensor_role::snapshot_part) throw std::runtime_error("no buffers");
  };
  here.give(1, 1, 2, {{2, 0}});
  here.activations_come(1, 1);
  here.restore(1, own_plan(1));  // on its way already
  CHECK(here.members.failures.empty());
  CHECK(here.sent<node_restored>().size() == 1);
}

TEST_CASE("a stage that fails while it is restored is started again like any other actor") {
  for (std::string point : {"N", "D", "L"}) {
    INFO("at " << point);
    one_node here;
    here.begin();
    here.train(1);
    here.fence(2);
    here.view(2);
    here.model->before = [point](const std::string& call) {
      if (call.starts_with(point)) throw std::runtime_error("out of luck");
    };
    here.restore(2, point == "N" ? restore_plan() : own_plan(1));
    here.advance(1ms);
    CHECK(here.members.failures.empty());
    REQUIRE(here.members.requests.size() == 1);
    CHECK(here.members.requests[0] ==
          std::pair<std::uint64_t, std::string>(2, "stage 1 on rank 1 failed: out of luck"));
    here.model->before = [](const std::string&) {};
    here.fence(3);
    here.view(3);
    CHECK(here.sent<call_entered>().back().inventory.parts.empty());
    here.restore(3, plan_of(1, from(0, 0, own), from(1, 0, peer)));
    here.part_comes(3, 1, 1, packed_with(7, 1));
    CHECK(here.sent<node_restored>().back().generation == 3);
  }
}

TEST_CASE("bad input that shows while a stage is restored fails the job at once") {
  one_node here;
  here.model->before = [](const std::string& call) {
    if (call.starts_with("N")) throw bad_input("no file of weights");
  };
  here.begin();
  here.advance(5s);
  CHECK(here.members.failures == std::vector<std::string>{"stage 1 on rank 1 failed: no file of weights"});
  CHECK(here.members.requests.empty());
}

TEST_CASE("a loader that fails is started again with all sources") {
  one_node here;
  here.define();
  struct failing_once : fake_source {
    using fake_source::fake_source;
    batch at(std::uint64_t step) override {
      if (!failed) {
        failed = true;
        throw std::runtime_error("cannot read the samples");
      }
      return fake_source::at(step);
    }
    bool failed = false;
  };
  here.actors.send(here.supervisor, add_source{std::make_shared<failing_once>(1)});
  here.view(1);
  here.enter(0);
  here.restore(1);
  auto given = grant{1, {0, call_kind::train, 1, 100, 0, 0}, 0, 1, {}, 0};
  here.hear(1, {actor_role::device, 1}, given);
  here.advance(1ms);
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0].second == "the loader on rank 1 failed: cannot read the samples");
  here.fence(2);
  here.view(2);
  here.restore(2);
  given.generation = 2;
  here.hear(2, {actor_role::device, 1}, given);
  here.activations_come(2, 0);
  CHECK(steps_done(here, 2) == numbers{0});
}

TEST_CASE("a device that does not stop makes its process a suspect, after a while") {
  one_node here;
  here.begin();
  auto is_no_device = [](caf::resumable* job) {
    auto* actor = dynamic_cast<caf::scheduled_actor*>(job);
    return !actor || actor->name() != std::string("device");
  };
  auto run_others = [&] { here.actors.coordinator().run_jobs_filtered(is_no_device); };
  caf::anon_send(here.supervisor, fence_raised{2, {}});
  run_others();
  here.actors.coordinator().advance_time(29s);
  run_others();
  CHECK(here.members.suspects.empty());
  CHECK(here.members.acknowledged.empty());
  here.actors.coordinator().advance_time(2s);
  run_others();
  REQUIRE(here.members.suspects.size() == 1);
  CHECK(here.members.suspects[0].first == 1);
  CHECK(here.members.suspects[0].second == "device 1 does not stop computing");
  CHECK(here.members.acknowledged.empty());
}

TEST_CASE("a link that ends is noticed") {
  one_node here;
  struct broken : recording_transport {
    using recording_transport::recording_transport;
    void send_control(int, std::uint64_t, std::span<const std::byte>) override {
      throw std::runtime_error("no buffers");
    }
  } transport{1};
  supervisor_options options;
  options.rank = 1;
  options.world_size = 2;
  options.out = &transport;
  options.members = &here.members;
  options.gate = &here.gate;
  options.directory = &here.directory;
  options.faults = &here.no_faults;
  options.trace = &here.trace;
  options.fenced = here.fenced;
  options.client = here.client;
  options.log = std::make_shared<spdlog::logger>("actors");
  options.threads = child_threads::shared;
  here.supervisor = here.actors.spawn<actor_of<supervisor_state>>(options);
  here.view(1);
  here.enter(0, call_kind::barrier);
  here.advance(1ms);
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0].second == "the link to rank 0 on rank 1 failed: no buffers");
}

TEST_CASE("links and schedulers that a new generation replaces are no failures") {
  for (int rank : {0, 1}) {
    one_node here(rank);
    here.begin();
    for (std::uint64_t generation = 2; generation < 6; ++generation) {
      here.fence(generation);
      here.view(generation);
      here.advance(5s);
    }
    CHECK(here.members.requests.empty());
    CHECK(here.members.failures.empty());
  }
}

namespace {

/// A transport that cannot be used any more.
struct dead_transport : recording_transport {
  using recording_transport::recording_transport;
  void connect(std::uint64_t, const std::map<int, node_address>&) override {
    throw std::runtime_error("no memory");
  }
};

}  // namespace

TEST_CASE("a supervisor that fails itself makes its process a suspect, or fails a job of one") {
  for (int world_size : {1, 2}) {
    one_node here(0, world_size);
    dead_transport transport(0);
    supervisor_options options;
    options.rank = 0;
    options.world_size = world_size;
    options.out = &transport;
    options.members = &here.members;
    options.gate = &here.gate;
    options.directory = &here.directory;
    options.faults = &here.no_faults;
    options.trace = &here.trace;
    options.fenced = here.fenced;
    options.client = here.client;
    options.log = std::make_shared<spdlog::logger>("actors");
    options.threads = child_threads::shared;
    here.supervisor = here.actors.spawn<actor_of<supervisor_state>>(options);
    here.view(1);
    auto told = here.failures_told();
    if (world_size == 2) {
      REQUIRE(here.members.suspects.size() == 1);
      CHECK(here.members.suspects[0].first == 0);
      CHECK(here.members.suspects[0].second == "the supervisor of rank 0 failed: no memory");
      CHECK(told.empty());
    } else {
      CHECK(here.members.failures == std::vector<std::string>{"the supervisor of rank 0 failed: no memory"});
      CHECK(told == here.members.failures);
    }
  }
}

// ---- peers

TEST_CASE("a peer that cannot be reached is reported while the generation runs, and not in a fence") {
  one_node here;
  here.actors.send(here.supervisor, peer_broken{0, "connection reset"});
  CHECK(here.members.suspects.empty());
  here.begin();
  here.actors.send(here.supervisor, peer_broken{0, "connection reset"});
  REQUIRE(here.members.suspects.size() == 1);
  CHECK(here.members.suspects[0] == std::pair(0, std::string("connection reset")));
  here.fence(2);
  here.actors.send(here.supervisor, peer_broken{0, "connection reset"});
  CHECK(here.members.suspects.size() == 1);
}

// ---- the scheduler's node

TEST_CASE("the lowest rank runs a scheduler in each generation, which reaches everyone") {
  one_node here(0);
  here.define();
  here.view(1);
  here.enter(0);
  call_entered other{1, {1, 0, {}}, {0, call_kind::train, 0, 10, 0, 0}, {}, 0};
  here.hear(1, {actor_role::scheduler, 0}, other);
  REQUIRE(here.sent<restore_order>().size() == 1);
  CHECK(here.out.frames[0].to_rank == 1);
  here.hear(1, {actor_role::scheduler, 0}, node_restored{1, 1, {}});
  REQUIRE(here.sent<grant>().size() == 1);  // for the other node's device
  CHECK(here.sent<grant>()[0].end_step > 0);
  CHECK(here.members.phases.size() == 3);

  here.fence(2);
  here.view(2);
  here.hear(1, {actor_role::scheduler, 0}, other);  // late
  CHECK(here.sent<restore_order>().size() == 1);
  other.generation = 2;
  here.hear(2, {actor_role::scheduler, 0}, other);
  REQUIRE(here.sent<restore_order>().size() == 2);
  CHECK(here.sent<restore_order>()[1].generation == 2);
}

TEST_CASE("a job that is defined after the view reaches the scheduler too") {
  one_node here(0);
  here.view(1);
  here.define();
  here.enter(0);
  here.hear(1, {actor_role::scheduler, 0},
            call_entered{1, {1, 0, {}}, {0, call_kind::train, 0, 10, 0, 0}, {}, 0});
  CHECK(here.sent<restore_order>().size() == 1);
}

TEST_CASE("when the supervisor ends, so does everyone it started") {
  one_node here(0);
  here.begin();
  caf::anon_send_exit(here.supervisor, caf::exit_reason::user_shutdown);
  here.supervisor = {};
  here.gate.close();
  here.directory.close();
  here.actors.run();
  CHECK(here.actors.system().registry().running() == 0);
}
