#include "troupe/link/inbound_gate.hpp"

#include <catch2/catch_test_macros.hpp>

#include "actors/virtual_actors.hpp"
#include "support/recording_transport.hpp"
#include "troupe/link/wire_table.hpp"
#include "troupe/messages/link.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/wire/codec.hpp"

using namespace troupe;
using namespace troupe::actors::link;
using namespace troupe::testing;

namespace {

constexpr actors::actor::actor_name scheduler_name{actors::actor::actor_role::scheduler, 0, 1};
constexpr actors::actor::actor_name device_name{actors::actor::actor_role::device, 3, 1};

std::vector<std::byte> frame(std::int32_t index, actors::actor::actor_name to = scheduler_name) {
  return *encode_message({to}, caf::make_message(actors::messages::writes_lost{0, index}));
}

std::vector<std::int32_t> indices(const probe& receiver) {
  std::vector<std::int32_t> found;
  for (const auto& seen : receiver.all<actors::messages::writes_lost>()) found.push_back(seen.rank);
  return found;
}

/// On rank 1, in incarnation 1, of three.
struct gate_and_receivers {
  virtual_actors actors;
  recording_transport out{1};
  probe scheduler{actors};
  probe device{actors};
  inbound_gate gate;
  gate_and_receivers() {
    gate.bind(scheduler_name, scheduler.handle());
    gate.bind(device_name, device.handle());
  }
  ~gate_and_receivers() { gate.close(); }
  void open(std::uint64_t generation) {
    cluster::membership_view view{generation, {}};
    for (int rank : {0, 1, 2}) view.members.emplace_back().rank = rank;
    gate.open(generation,
              std::make_shared<process_links>(actors.system(), view, process_links_options{1, &out}));
    actors.run();
  }
  void deliver(std::uint64_t generation, const std::vector<std::byte>& body, int from_rank = 0) {
    gate.deliver(from_rank, generation, body);
    actors.run();
  }
  /// A request, and what its reply says.
  std::string refusal(const actors::actor::actor_name& to) {
    out.frames.clear();
    message_head head{to, message_kind::request, 5};
    deliver(2, *encode_message(head, caf::make_message(actors::messages::writes_lost{0, 1})), 2);
    if (out.frames.size() != 1) return "";
    auto reply = decode_message(out.frames[0].body);
    CHECK(out.frames[0].to_rank == 2);
    CHECK(reply.head == message_head{{}, message_kind::reply, 5});
    return reply.content.get_as<actors::messages::request_failed>(0).text;
  }
};

using order = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("frames of the open generation go to the actor that they name") {
  gate_and_receivers here;
  here.open(2);
  here.deliver(2, frame(1));
  here.deliver(2, frame(2, device_name));
  CHECK(indices(here.scheduler) == order{1});
  CHECK(indices(here.device) == order{2});
}

TEST_CASE("a frame for an actor that this process does not have is dropped") {
  gate_and_receivers here;
  here.open(2);
  here.deliver(2, frame(1, {actors::actor::actor_role::device, 4, 1}));
  here.deliver(2, frame(1, {static_cast<actors::actor::actor_role>(99), 0}));
  CHECK(here.scheduler.size() == 0);
  CHECK(here.device.size() == 0);
  CHECK(here.gate.statistics().unknown_actor == 2);
}

TEST_CASE("a request to an actor that this process does not have is answered with an error that names it") {
  gate_and_receivers here;
  here.open(2);
  CHECK(here.refusal({actors::actor::actor_role::device, 4, 1}) ==
        "device/4#1 is not in the process that was asked");
}

TEST_CASE("a frame for an older incarnation is dropped and counted, and a request refused") {
  gate_and_receivers here;
  here.open(2);
  here.deliver(2, frame(1, {actors::actor::actor_role::scheduler, 0, 0}));
  CHECK(here.scheduler.size() == 0);
  CHECK(here.gate.statistics().old_incarnation == 1);
  CHECK(here.refusal({actors::actor::actor_role::scheduler, 0, 0}) ==
        "scheduler/0#0 has been replaced by incarnation 1");
  CHECK(here.gate.statistics().old_incarnation == 2);
}

TEST_CASE("frames for a newer incarnation are held until an actor has that name, and delivered in order") {
  gate_and_receivers here;
  probe next(here.actors);
  here.open(2);
  here.deliver(2, frame(1, {actors::actor::actor_role::scheduler, 0, 2}));
  here.deliver(2, frame(2, {actors::actor::actor_role::scheduler, 0, 2}));
  here.deliver(2, frame(3));
  here.deliver(2, frame(4, {actors::actor::actor_role::device, 3, 2}));
  CHECK(indices(here.scheduler) == order{3});
  here.gate.bind({actors::actor::actor_role::scheduler, 0, 2}, next.handle());
  here.actors.run();
  CHECK(indices(next) == order{1, 2});
  CHECK(here.device.size() == 0);
  here.open(3);  // what is still held ends with its generation
  CHECK(here.gate.statistics().old_generation == 1);
}

TEST_CASE("a frame from a rank that is no member of the generation is dropped and counted") {
  gate_and_receivers here;
  here.open(2);
  here.deliver(2, frame(1), 3);
  CHECK(here.scheduler.size() == 0);
  CHECK(here.gate.statistics().unknown_sender == 1);
}

TEST_CASE("frames of an older generation are dropped and counted") {
  gate_and_receivers here;
  here.open(2);
  here.deliver(1, frame(1));
  CHECK(here.scheduler.size() == 0);
  CHECK(here.gate.statistics().old_generation == 1);
}

TEST_CASE("frames of a newer generation are held, and delivered in order when it opens") {
  gate_and_receivers here;
  here.open(1);
  here.deliver(2, frame(1));
  here.deliver(2, frame(2));
  here.deliver(1, frame(0));
  here.deliver(2, frame(3));
  CHECK(indices(here.scheduler) == order{0});
  here.open(2);
  here.deliver(2, frame(4));
  CHECK(indices(here.scheduler) == order{0, 1, 2, 3, 4});
  CHECK(here.gate.statistics().old_generation == 0);
}

TEST_CASE("frames of a generation that never opened are dropped with it") {
  gate_and_receivers here;
  here.deliver(2, frame(1));
  here.deliver(3, frame(2));
  here.deliver(4, frame(3));
  here.open(3);
  here.actors.run();
  CHECK(indices(here.scheduler) == order{2});
  CHECK(here.gate.statistics().old_generation == 1);
  here.open(4);
  here.actors.run();
  CHECK(indices(here.scheduler) == order{2, 3});
}

TEST_CASE("held frames are delivered once") {
  gate_and_receivers here;
  here.deliver(2, frame(1));
  here.open(2);
  here.open(2);
  here.actors.run();
  CHECK(indices(here.scheduler) == order{1});
}

TEST_CASE("a held frame goes to the actor that has the name when its generation opens") {
  gate_and_receivers here;
  probe next(here.actors);
  here.deliver(2, frame(1));
  here.gate.bind(scheduler_name, next.handle());
  here.open(2);
  here.actors.run();
  CHECK(here.scheduler.size() == 0);
  CHECK(indices(next) == order{1});
}

TEST_CASE("a closed gate delivers no frame") {
  gate_and_receivers here;
  here.open(1);
  here.gate.close();
  here.deliver(1, frame(1));
  CHECK(here.scheduler.size() == 0);
}

TEST_CASE("a frame that is no message is refused on arrival, not when its generation opens") {
  gate_and_receivers here;
  std::vector<std::byte> bad(40, std::byte{0x5a});
  here.open(1);
  CHECK_THROWS_AS(here.gate.deliver(0, 1, bad), wire::decode_error);
  CHECK_THROWS_AS(here.gate.deliver(0, 2, bad), wire::decode_error);
  here.deliver(2, frame(1));
  CHECK_NOTHROW(here.open(2));
  CHECK(indices(here.scheduler) == order{1});
}

TEST_CASE("a frame beyond the limit of frames held for later generations is refused") {
  gate_and_receivers here;
  for (std::size_t i = 0; i < inbound_gate::max_held; ++i) here.gate.deliver(0, 2, frame(1));
  CHECK_THROWS_AS(here.gate.deliver(0, 2, frame(1)), wire::decode_error);
  CHECK_NOTHROW(here.gate.deliver(0, 0, frame(1)));
}
