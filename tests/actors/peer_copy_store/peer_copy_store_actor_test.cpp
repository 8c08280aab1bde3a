#include "troupe/peer_copy_store/peer_copy_store_actor.hpp"

#include <catch2/catch_test_macros.hpp>

#include "actors/virtual_actors.hpp"
#include "support/bits.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::actors::peer_copy_store;
using namespace troupe::testing;

namespace {

std::vector<named_tensor> state_of(float value) { return {{"weight", tensor::full({3}, value)}}; }

struct one_store {
  virtual_actors actors;
  probe scheduler{actors};
  caf::actor store = actors.spawn<actors::actor::actor_of<peer_copy_store_state>>(peer_copy_store_options{1});

  one_store() { begin(1); }
  void begin(std::uint64_t generation, std::uint64_t step = 0) {
    actors.send(store, actors::messages::store_generation{generation, step, scheduler.handle()});
  }
  void replica(std::uint64_t generation, std::uint64_t step, int stage) {
    wire::packed_state_pool pool;
    actors.send(store,
                actors::messages::replica_arrived{
                    generation, step, {{stage}}, pack_state(state_of(static_cast<float>(step)), pool)});
  }
  actors::messages::held_parts list() {
    return *ask<actors::messages::held_parts>(actors, store, actors::messages::list_parts{}).value;
  }
  std::vector<recovery::held_part> held() { return list().parts; }
};

}  // namespace

TEST_CASE("a peer's copy is kept and reported to the scheduler") {
  one_store here;
  here.replica(1, 5, 0);
  auto held = here.scheduler.last<actors::messages::part_held>();
  CHECK(held.generation == 1);
  CHECK(held.rank == 1);
  CHECK(held.part == recovery::held_part{5, {0}, 1, recovery::part_location::peer_memory});
  auto copy =
      ask<actors::messages::stage_copy>(here.actors, here.store, actors::messages::get_replica{5, {}});
  REQUIRE(copy.value);
  CHECK(same_bits(wire::unpack_state(copy.value->packed), state_of(5)));
  CHECK(ask<actors::messages::stage_copy>(here.actors, here.store, actors::messages::get_replica{5, {{1}}})
            .problem == "no replica of stage 1 at step 5");
}

TEST_CASE("copies of rolled back steps are dropped with their generation, and older steps are kept") {
  one_store here;
  for (std::uint64_t step : {4, 5, 6}) here.replica(1, step, 0);
  here.begin(2, 5);
  CHECK(here.held() == std::vector<recovery::held_part>{{4, {0}, 1, recovery::part_location::peer_memory},
                                                        {5, {0}, 1, recovery::part_location::peer_memory}});
}

TEST_CASE("copies of older generations that come late are not kept") {
  one_store here;
  here.begin(2, 5);
  here.replica(1, 5, 0);
  CHECK(here.held().empty());
}

TEST_CASE("copies that arrive before their generation begins are kept, and reported when it begins") {
  one_store here;
  here.replica(2, 6, 0);
  here.scheduler.clear();
  here.begin(2, 5);
  CHECK(here.held() == std::vector<recovery::held_part>{{6, {0}, 2, recovery::part_location::peer_memory}});
  auto told = here.scheduler.all<actors::messages::part_held>();
  REQUIRE(told.size() == 1);
  CHECK(told[0].generation == 2);
  CHECK(told[0].part.step == 6);
}

TEST_CASE("copies older than a committed step are dropped") {
  one_store here;
  for (std::uint64_t step : {4, 5, 6})
    for (int stage : {0, 1}) here.replica(1, step, stage);
  here.actors.send(here.store, actors::messages::drop_before{6});
  CHECK(here.held() == std::vector<recovery::held_part>{{6, {0}, 1, recovery::part_location::peer_memory},
                                                        {6, {1}, 1, recovery::part_location::peer_memory}});
}

TEST_CASE("the store knows the newest committed step until that step is rolled back") {
  one_store here;
  CHECK(here.list().committed_step == 0);
  here.actors.send(here.store, actors::messages::drop_before{6});
  here.actors.send(here.store, actors::messages::drop_before{4});
  CHECK(here.list().committed_step == 6);
  here.begin(2, 0);
  CHECK(here.list().committed_step == 0);
}
