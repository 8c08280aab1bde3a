#include "troupe/stage/stage_actor.hpp"

#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>

#include "actors/virtual_actors.hpp"
#include "support/bits.hpp"
#include "support/processes/fake_program.hpp"
#include "support/recording_transport.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/snapshot_writer.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::actors::stage;
using namespace troupe::testing;

namespace {

/// A state of stage 2 whose weight is `weight`.
tensor packed_with(float weight) {
  wire::packed_state_pool pool;
  return pack_state({{"2.weight", tensor::full({1}, weight)},
                     {"2.moment", tensor::zeros({1})},
                     {"2.steps", tensor::full({1}, 4)}},
                    pool);
}

struct one_stage {
  virtual_actors actors;
  recording_transport out{1};
  std::shared_ptr<fake_model> model = std::make_shared<fake_model>();
  probe peer_copy_store{actors}, snapshot_writer{actors};
  probe scheduler{actors};
  std::ostringstream log;
  caf::actor stage;

  std::optional<world_rank> keeper;

  explicit one_stage(std::optional<world_rank> with_keeper = world_rank{2},
                     const layout::job_part& part = {{{.stage = 2}}})
      : keeper(with_keeper) {
    model->num_stages = 4;
    auto logger =
        std::make_shared<spdlog::logger>("actors", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
    stage = actors.spawn<actors::actor::actor_of<stage_state>>(
        stage_options{{part, 1, &out, logger}, part.id.cell, fake_programs(model)});
  }
  answer<actors::messages::stage_ready> restore(std::uint64_t generation, std::uint64_t step,
                                                tensor packed = {}, bool from_scratch = false) {
    actors::messages::restore_stage command;
    command.generation = generation;
    command.step = step;
    command.from_scratch = from_scratch;
    command.packed = packed;
    command.scheduler = scheduler.handle();
    command.peer_copy_store = peer_copy_store.handle();
    command.snapshot_writer = snapshot_writer.handle();
    command.keeper = keeper;
    return ask<actors::messages::stage_ready>(actors, stage, command);
  }
  void copied(std::uint64_t generation, std::uint64_t step, bool to_disk = false) {
    actors.send(stage, actors::messages::state_copied{generation, step, packed_with(static_cast<float>(step)),
                                                      to_disk});
  }
  std::vector<std::uint64_t> steps_held() {
    std::vector<std::uint64_t> steps;
    auto held = ask<actors::messages::held_parts>(actors, stage, actors::messages::list_parts{});
    for (const auto& part : held.value->parts) steps.push_back(part.step);
    return steps;
  }
};

using steps = std::vector<std::uint64_t>;

bool same_state(const tensor& a, const tensor& b) {
  return same_bits(wire::unpack_state(a), wire::unpack_state(b));
}

float weight_of(const answer<actors::messages::stage_ready>& ready) {
  return ready.value->program->parameters()[0].value.values<float>()[0];
}

}  // namespace

TEST_CASE("from scratch a stage has its initial weights and no copies") {
  one_stage here;
  auto ready = here.restore(1, 0, {}, true);
  REQUIRE(ready.value);
  CHECK(ready.value->cell.stage == 2);
  CHECK(weight_of(ready) == 1.25f);
  CHECK(here.steps_held().empty());
  CHECK(here.out.tensors.empty());
  CHECK(here.scheduler.size() == 0);
}

TEST_CASE("a second start from scratch makes the weights anew and drops all copies") {
  one_stage here;
  auto first = here.restore(1, 0, {}, true);
  here.copied(1, 3);
  first.value->program->load_state(wire::unpack_state(packed_with(9)));
  auto second = here.restore(2, 0, {}, true);
  CHECK(weight_of(second) == 1.25f);
  CHECK(here.steps_held().empty());
}

TEST_CASE("a copy is kept, reported to the scheduler and sent to the peer") {
  one_stage here;
  here.restore(1, 0, {}, true);
  here.copied(1, 3);
  CHECK(here.steps_held() == steps{3});
  auto held = here.scheduler.last<actors::messages::part_held>();
  CHECK(held.generation == 1);
  CHECK(held.rank == 1);
  CHECK(held.part == recovery::held_part{3, {2}, 1, recovery::part_location::own_memory});
  REQUIRE(here.out.tensors.size() == 1);
  CHECK(here.out.tensors[0].to_rank == 2);
  CHECK(here.out.tensors[0].tag ==
        transport::tensor_tag{1, 3, 0, 2, 0, transport::tensor_role::snapshot_part});
  CHECK(same_state(here.out.tensors[0].value, packed_with(3)));
  CHECK(here.snapshot_writer.size() == 0);
}

TEST_CASE("a dropped copy that is due on disk is reported to the scheduler as not written, with a warning") {
  one_stage here;
  here.restore(1, 0, {}, true);
  here.copied(1, 3);
  here.copied(1, 5);
  here.actors.send(here.stage, actors::messages::drop_before{5});
  here.actors.send(here.stage, actors::messages::write_copy{3});
  auto refused = here.scheduler.last<actors::messages::part_written>();
  CHECK(refused.generation == 1);
  CHECK(refused.step == 3);
  CHECK(refused.entry.part == layout::part_id{{.stage = 2}});
  CHECK_THAT(refused.problem, Catch::Matchers::ContainsSubstring("no longer holds the copy of step 3"));
  CHECK_THAT(here.log.str(), Catch::Matchers::ContainsSubstring("snapshot given up"));
  CHECK(here.snapshot_writer.all<actors::messages::write_part>().empty());
  here.actors.send(here.stage, actors::messages::write_copy{5});
  CHECK(here.snapshot_writer.last<actors::messages::write_part>().step == 5);
}

TEST_CASE("in a job of one process copies are not sent") {
  one_stage here{std::nullopt};
  here.restore(1, 0, {}, true);
  here.copied(1, 3);
  CHECK(here.out.tensors.empty());
  CHECK(here.scheduler.all<actors::messages::part_held>().size() == 1);
}

TEST_CASE("a copy that is due on disk goes to the snapshot writer too") {
  one_stage here;
  here.restore(1, 0, {}, true);
  here.copied(1, 3, true);
  auto command = here.snapshot_writer.last<actors::messages::write_part>();
  CHECK(command.generation == 1);
  CHECK(command.step == 3);
  CHECK(command.part == layout::part_id{{.stage = 2}});
  CHECK(same_state(command.packed, packed_with(3)));
}

TEST_CASE("copies of another generation are dropped") {
  one_stage here;
  here.restore(2, 0, {}, true);
  here.copied(1, 3, true);
  here.copied(3, 3, true);
  CHECK(here.steps_held().empty());
  CHECK(here.scheduler.size() == 0);
  CHECK(here.snapshot_writer.size() == 0);
  CHECK(here.out.tensors.empty());
}

TEST_CASE("a stage rolls back to its own copy and forgets what came after") {
  one_stage here;
  auto program = here.restore(1, 0, {}, true).value->program;
  for (std::uint64_t step : {3, 4, 5}) here.copied(1, step);
  here.out.tensors.clear();
  here.scheduler.clear();
  here.model->calls.clear();
  auto ready = here.restore(2, 4);
  REQUIRE(ready.value);
  CHECK(ready.value->program == program);
  CHECK(weight_of(ready) == 4);
  CHECK(here.model->calls == std::vector<std::string>{"D2", "L2"});
  CHECK(here.steps_held() == steps{3, 4});
  // The peer's copy may be the one that was lost.
  REQUIRE(here.out.tensors.size() == 1);
  CHECK(here.out.tensors[0].tag.generation == 2);
  CHECK(here.out.tensors[0].tag.step == 4);
  CHECK(here.scheduler.last<actors::messages::part_held>().part.generation == 2);
}

TEST_CASE("a stage takes the state it is given and holds it as a copy") {
  one_stage here;
  auto ready = here.restore(2, 4, packed_with(7));
  REQUIRE(ready.value);
  CHECK(weight_of(ready) == 7);
  CHECK(here.steps_held() == steps{4});
  CHECK(here.scheduler.last<actors::messages::part_held>().part ==
        recovery::held_part{4, {2}, 2, recovery::part_location::own_memory});
  auto copy = ask<actors::messages::stage_copy>(here.actors, here.stage, actors::messages::get_copy{4});
  REQUIRE(copy.value);
  CHECK(same_state(copy.value->packed, packed_with(7)));
}

TEST_CASE("a restore of a missing copy is an error that names the copy") {
  one_stage here;
  CHECK(here.restore(2, 4).problem == "stage 2 holds no copy of step 4");
  CHECK(ask<actors::messages::stage_copy>(here.actors, here.stage, actors::messages::get_copy{5}).problem ==
        "stage 2 holds no copy of step 5");
}

TEST_CASE("a state that cannot be loaded ends the stage with the reason") {
  wire::packed_state_pool pool;
  auto foreign = pack_state({{"other.weight", tensor::full({1}, 1)}}, pool);
  for (auto [packed, reason] :
       {std::pair(foreign, "another model"), {tensor::zeros({3}, dtype::u8), "packed state"}}) {
    one_stage here;
    obituary of(here.actors, here.stage);
    CHECK(here.restore(2, 4, packed).problem.find(reason) != std::string::npos);
    CHECK(of.reason().value_or("").find(reason) != std::string::npos);
  }
}

TEST_CASE("a committed step drops older copies here and at the peer copy store, and keeps its own") {
  one_stage here;
  here.restore(1, 0, {}, true);
  for (std::uint64_t step : {3, 4, 5}) here.copied(1, step);
  here.actors.send(here.stage, actors::messages::drop_before{4});
  CHECK(here.steps_held() == steps{4, 5});
  CHECK(here.peer_copy_store.last<actors::messages::drop_before>().step == 4);
}

TEST_CASE("a stage that outlives its snapshot writer uses the writer's replacement") {
  one_stage here;
  here.restore(1, 0, {}, true);
  probe next(here.actors);
  actors::messages::restore_stage command;
  command.generation = 2;
  command.from_scratch = true;
  command.scheduler = here.scheduler.handle();
  command.peer_copy_store = command.snapshot_writer = next.handle();
  REQUIRE(ask<actors::messages::stage_ready>(here.actors, here.stage, command).value);
  here.copied(2, 3, true);
  here.actors.send(here.stage, actors::messages::drop_before{3});
  CHECK(here.snapshot_writer.size() == 0);
  CHECK(next.all<actors::messages::write_part>().size() == 1);
  CHECK(next.all<actors::messages::drop_before>().size() == 1);
}

TEST_CASE("peer copy store and snapshot writer may be replaced within a generation") {
  one_stage here;
  here.restore(1, 0, {}, true);
  probe store(here.actors), writer(here.actors);
  here.actors.send(here.stage, actors::messages::io_replaced{store.handle(), writer.handle()});
  here.copied(1, 3, true);
  here.actors.send(here.stage, actors::messages::drop_before{3});
  CHECK(writer.last<actors::messages::write_part>().step == 3);
  CHECK(store.last<actors::messages::drop_before>().step == 3);
  CHECK(here.snapshot_writer.all<actors::messages::write_part>().empty());
}

TEST_CASE("a stage sends all its copies again when the peer has lost them") {
  one_stage here;
  here.restore(1, 0, {}, true);
  here.copied(1, 3);
  here.copied(1, 4);
  here.out.tensors.clear();
  here.scheduler.clear();
  here.actors.send(here.stage, actors::messages::replicate_again{});
  REQUIRE(here.out.tensors.size() == 2);
  CHECK(here.out.tensors[0].tag.step == 3);
  CHECK(here.out.tensors[1].tag.step == 4);
  CHECK(here.out.tensors[1].to_rank == 2);
  CHECK(here.scheduler.size() == 0);
}

TEST_CASE("a command to write a copy that is yet to be made is left to the device") {
  one_stage here;
  here.restore(1, 0, {}, true);
  here.actors.send(here.stage, actors::messages::write_copy{3});
  here.copied(1, 2);
  here.actors.send(here.stage, actors::messages::write_copy{3});
  CHECK(here.scheduler.all<actors::messages::part_written>().empty());
  here.copied(1, 3, true);
  CHECK(here.snapshot_writer.all<actors::messages::write_part>().size() == 1);
}

TEST_CASE("a copy that was requested for the disk before the device has made it is written then") {
  one_stage here;
  here.restore(1, 0, {}, true);
  here.copied(1, 2);
  here.actors.send(here.stage, actors::messages::write_copy{3});
  here.copied(1, 3);
  here.copied(1, 4);
  REQUIRE(here.snapshot_writer.all<actors::messages::write_part>().size() == 1);
  CHECK(here.snapshot_writer.last<actors::messages::write_part>().step == 3);
  here.actors.send(here.stage, actors::messages::write_copy{5});
  here.restore(2, 4);  // what was requested before a restore is void
  here.copied(2, 5);
  CHECK(here.snapshot_writer.all<actors::messages::write_part>().size() == 1);
}

TEST_CASE("of equal parts that of replica 0 is written, and every replica keeps its own in memory") {
  for (int replica : {0, 1}) {
    one_stage here{std::nullopt, {{{.stage = 2, .replica = replica}}, layout::replica_content::equal}};
    here.restore(1, 0, {}, true);
    here.copied(1, 3, true);
    here.actors.send(here.stage, actors::messages::write_copy{3});
    CHECK(here.snapshot_writer.all<actors::messages::write_part>().size() == (replica == 0 ? 2U : 0U));
    CHECK(here.scheduler.all<actors::messages::part_written>().empty());
    CHECK(here.scheduler.last<actors::messages::part_held>().part.part.cell.replica == replica);
    CHECK(here.out.tensors.empty());
  }
}

TEST_CASE("a stage says which tensors its state has, also before it has got one") {
  one_stage here;
  auto listed =
      ask<actors::messages::contents_listed>(here.actors, here.stage, actors::messages::list_contents{});
  REQUIRE(listed.value);
  CHECK(listed.value->contents == whole_contents(wire::unpack_state(packed_with(0))));
}
