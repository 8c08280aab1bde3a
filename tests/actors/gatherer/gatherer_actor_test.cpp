#include "troupe/gatherer/gatherer_actor.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch_test_macros.hpp>
#include <sstream>

#include "actors/virtual_actors.hpp"
#include "support/drained.hpp"
#include "support/recording_transport.hpp"
#include "troupe/actor/actor_error.hpp"
#include "troupe/actor/actor_of.hpp"

using namespace troupe;
using namespace troupe::actors::gatherer;
using namespace troupe::testing;

namespace {

/// Rank 1 of three, whose calls give three tensors.
struct one_gatherer {
  virtual_actors actors;
  recording_transport out{1};
  std::shared_ptr<actors::job::client_mailbox> client = std::make_shared<actors::job::client_mailbox>();
  std::ostringstream logged;
  std::shared_ptr<spdlog::logger> log =
      std::make_shared<spdlog::logger>("actors", std::make_shared<spdlog::sinks::ostream_sink_st>(logged));
  probe of_rank_0{actors}, of_rank_2{actors};  ///< the gatherers of the others
  caf::actor gatherer =
      actors.spawn<actors::actor::actor_of<gatherer_state>>(gatherer_options{1, 3, &out, client, log});

  void gather(std::uint64_t generation, std::uint32_t call, bool from_caches = false) {
    actors::messages::gather_tensors command{generation, call, 3, from_caches};
    if (from_caches) command.caches = {of_rank_0.handle(), of_rank_2.handle()};
    actors.send(gatherer, command);
  }
  void arrives(std::uint64_t generation, std::uint32_t call, std::uint32_t index) {
    actors.send(gatherer, actors::messages::tensor_gathered{generation, call, index,
                                                            tensor::full({1}, static_cast<float>(index))});
  }
  void all_arrive(std::uint64_t generation, std::uint32_t call) {
    for (std::uint32_t index : {2u, 0u, 1u}) arrives(generation, call, index);
  }
  /// First elements of the tensors that the program gets, per call; {-1}: they are lost.
  std::vector<std::vector<float>> given() {
    std::vector<std::vector<float>> all;
    for (const auto& event : drained(*client)) {
      if (std::holds_alternative<actors::job::gathered_unavailable>(event)) all.push_back({-1});
      if (auto* gathered = std::get_if<actors::job::gathered_tensors>(&event)) {
        all.emplace_back();
        for (const auto& one : gathered->tensors) all.back().push_back(one.values<float>()[0]);
      }
    }
    return all;
  }
};

using numbers = std::vector<std::vector<float>>;

}  // namespace

TEST_CASE("the program gets all tensors of a call once, in order, when the last has come") {
  one_gatherer here;
  here.gather(1, 4);
  here.arrives(1, 4, 2);
  here.arrives(1, 4, 0);
  CHECK(here.given().empty());
  here.arrives(1, 4, 1);
  here.arrives(1, 4, 1);
  CHECK(here.given() == numbers{{0, 1, 2}});
}

TEST_CASE(
    "a call announced twice keeps the tensors that have arrived; a new generation starts without them") {
  one_gatherer here;
  here.gather(1, 4);
  here.arrives(1, 4, 2);
  here.gather(1, 4);
  here.arrives(1, 4, 0);
  here.arrives(1, 4, 1);
  CHECK(here.given() == numbers{{0, 1, 2}});
  here.gather(2, 4);
  here.arrives(2, 4, 2);
  here.arrives(1, 4, 0);  // late
  here.arrives(2, 3, 0);
  here.arrives(2, 4, 1);
  CHECK(here.given().empty());
  here.arrives(2, 4, 0);
  CHECK(here.given() == numbers{{0, 1, 2}});
}

TEST_CASE("a request for a call is answered with the tensors that this process keeps, and with their names") {
  one_gatherer here;
  here.gather(1, 4);
  here.all_arrive(1, 4);
  auto reply =
      ask<actors::messages::cached_sent>(here.actors, here.gatherer, actors::messages::get_cached{5, 2, 4});
  REQUIRE(here.out.tensors.size() == 2);  // places 0 and 1 are rank 1's
  CHECK(here.out.tensors[1].to_rank == 2);
  CHECK(here.out.tensors[1].tag == transport::tensor_tag{5, 0, 4, 0, 1, transport::tensor_role::gathered});
  CHECK(here.out.tensors[1].value.values<float>()[0] == 1);
  CHECK(reply.value->indices == std::vector<std::uint32_t>{0, 1});
  CHECK(ask<actors::messages::cached_sent>(here.actors, here.gatherer, actors::messages::get_cached{5, 2, 3})
            .value->indices.empty());
}

TEST_CASE(
    "for a finished call the gatherer asks all other processes and delivers what they have to the program") {
  one_gatherer here;
  here.gather(2, 4, true);
  CHECK(here.of_rank_0.last<actors::messages::get_cached>().call == 4);
  CHECK(here.of_rank_2.last<actors::messages::get_cached>().rank == 1);
  here.of_rank_0.answer(actors::messages::cached_sent{{0, 2}});
  here.arrives(2, 4, 0);
  here.arrives(2, 4, 2);
  here.of_rank_2.answer(actors::messages::cached_sent{{1, 2}});
  here.arrives(2, 4, 2);
  CHECK(here.given().empty());  // the last one is on its way
  here.arrives(2, 4, 1);
  CHECK(here.given() == numbers{{0, 1, 2}});
}

TEST_CASE("a call announced before it is known to be finished is requested from the others as well, once") {
  one_gatherer here;
  here.gather(2, 4);
  here.gather(2, 4, true);
  here.gather(2, 4, true);
  CHECK(here.of_rank_0.size() == 1);
  CHECK(here.of_rank_2.size() == 1);
  here.of_rank_0.answer(actors::messages::cached_sent{{0, 1, 2}});
  here.all_arrive(2, 4);
  CHECK(here.given() == numbers{{0, 1, 2}});
}

TEST_CASE("a tensor that no process keeps is reported as lost once all processes have answered") {
  one_gatherer here;
  here.gather(1, 4, true);
  here.gather(2, 4, true);
  here.of_rank_0.answer(actors::messages::cached_sent{{0, 2}});  // of generation 1
  here.of_rank_0.answer(actors::messages::cached_sent{{0, 2}});
  here.of_rank_2.answer(actors::messages::cached_sent{});  // of generation 1
  CHECK(here.given().empty());
  here.of_rank_2.answer(actors::messages::cached_sent{{2}});
  CHECK(here.given() == numbers{{-1}});
}

TEST_CASE("a process that does not answer counts as one that keeps nothing, and the log names it") {
  one_gatherer here;
  here.gather(2, 4, true);
  here.of_rank_0.answer(actors::messages::cached_sent{{0, 2}});
  here.of_rank_2.answer(
      make_error(actors::actor::actor_error::timed_out, "gatherer/2#0 has not replied within 10 s"));
  CHECK(here.given() == numbers{{-1}});
  CHECK(here.logged.str().find("call 4") != std::string::npos);
  CHECK(here.logged.str().find("gatherer/2#0 has not replied within 10 s") != std::string::npos);
}

TEST_CASE("a process that is lost does not count as one that keeps nothing: the next generation asks again") {
  one_gatherer here;
  here.gather(2, 4, true);
  here.of_rank_0.answer(actors::messages::cached_sent{{0, 2}});
  here.of_rank_2.answer(
      make_error(actors::actor::actor_error::lost, "gatherer/2#0 cannot be reached any more"));
  CHECK(here.given().empty());
  here.gather(3, 4, true);
  CHECK(here.of_rank_2.size() == 2);
}

TEST_CASE("a job of one process keeps no tensors of finished calls") {
  virtual_actors actors;
  recording_transport out{0};
  auto client = std::make_shared<actors::job::client_mailbox>();
  auto gatherer =
      actors.spawn<actors::actor::actor_of<gatherer_state>>(gatherer_options{0, 1, &out, client, nullptr});
  actors.send(gatherer, actors::messages::gather_tensors{1, 4, 3, true, {}});
  REQUIRE(client->size() == 1);
  CHECK(std::holds_alternative<actors::job::gathered_unavailable>(client->take()));
}
