#include "troupe/link/link_actor.hpp"

#include <catch2/catch_test_macros.hpp>

#include "actors/virtual_actors.hpp"
#include "support/recording_transport.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/device/messages.hpp"
#include "troupe/link/inbound_gate.hpp"
#include "troupe/link/wire_table.hpp"
#include "troupe/scheduler/messages.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr actor_name scheduler_name{actor_role::scheduler, 0};

struct one_link {
  virtual_actors actors;
  recording_transport out;
  caf::actor link = actors.spawn<actor_of<link_state>>(link_options{3, 7, &out});
  caf::actor proxy = spawn_proxy(actors.system(), link, scheduler_name);
  ~one_link() { caf::anon_send_exit(proxy, caf::exit_reason::kill); }
};

}  // namespace

TEST_CASE("what is sent to a proxy goes to the remote node with the link's generation and the actor's name") {
  one_link remote;
  remote.actors.send(remote.proxy, result_seen{7, 2, 1});
  REQUIRE(remote.out.frames.size() == 1);
  CHECK(remote.out.frames[0].to_rank == 3);
  CHECK(remote.out.frames[0].generation == 7);
  auto message = decode_message(remote.out.frames[0].body);
  CHECK(message.to == scheduler_name);
  CHECK(message.content.get_as<result_seen>(0).rank == 2);
}

TEST_CASE("messages to several actors behind one link keep their order") {
  one_link remote;
  auto device = spawn_proxy(remote.actors.system(), remote.link, {actor_role::device, 1});
  for (std::uint64_t end = 1; end <= 50; ++end) {
    grant given;
    given.end_step = end;
    remote.actors.send(device, given);
  }
  REQUIRE(remote.out.frames.size() == 50);
  for (std::uint64_t end = 1; end <= 50; ++end)
    CHECK(decode_message(remote.out.frames[end - 1].body).content.get_as<grant>(0).end_step == end);
  caf::anon_send_exit(device, caf::exit_reason::kill);
}

TEST_CASE("a message to a proxy is delivered by the gate of the other node") {
  one_link remote;
  probe scheduler(remote.actors);
  inbound_gate gate;
  gate.bind(scheduler_name, scheduler.handle());
  gate.open(7);
  remote.actors.send(remote.proxy, part_written{7, 1, 2, "file", 3, "sum", "host", "disk full"});
  for (const auto& frame : remote.out.frames) gate.deliver(frame.generation, frame.body);
  remote.actors.run();
  CHECK(scheduler.last<part_written>().problem == "disk full");
}

TEST_CASE(
    "a message that cannot cross nodes ends the link and its proxies, and the error names the receiver") {
  one_link remote;
  obituary of_link(remote.actors, remote.link), of_proxy(remote.actors, remote.proxy);
  remote.actors.send(remote.proxy, quiesce{7});
  REQUIRE(of_link.reason());
  CHECK(of_link.reason()->find("scheduler") != std::string::npos);
  CHECK(of_proxy.reason());
  CHECK(remote.out.frames.empty());
}

TEST_CASE("a proxy that is no longer referenced does not end its link") {
  one_link remote;
  obituary of_link(remote.actors, remote.link);
  spawn_proxy(remote.actors.system(), remote.link, {actor_role::device, 1});
  remote.actors.run();
  CHECK_FALSE(of_link.reason());
  remote.actors.send(remote.proxy, result_seen{7, 2, 1});
  CHECK(remote.out.frames.size() == 1);
}

TEST_CASE("when a link ends, actors that monitor one of its proxies get a down message") {
  one_link remote;
  obituary of(remote.actors, remote.proxy);
  CHECK_FALSE(of.reason());
  caf::anon_send_exit(remote.link, caf::exit_reason::user_shutdown);
  remote.actors.run();
  CHECK(of.reason());
}
