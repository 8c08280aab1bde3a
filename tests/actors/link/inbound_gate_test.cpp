#include "troupe/link/inbound_gate.hpp"

#include <catch2/catch_test_macros.hpp>

#include "actors/virtual_actors.hpp"
#include "troupe/link/wire_table.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/wire/codec.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr actor_name scheduler_name{actor_role::scheduler, 0};

std::vector<std::byte> frame(std::uint32_t index, actor_name to = scheduler_name) {
  return *encode_message(to, caf::make_message(result_seen{0, 0, index}));
}

std::vector<std::uint32_t> indices(const probe& receiver) {
  std::vector<std::uint32_t> found;
  for (const auto& seen : receiver.all<result_seen>()) found.push_back(seen.index);
  return found;
}

struct gate_and_receivers {
  virtual_actors actors;
  probe scheduler{actors};
  probe device{actors};
  inbound_gate gate;
  gate_and_receivers() {
    gate.bind(scheduler_name, scheduler.handle());
    gate.bind({actor_role::device, 3}, device.handle());
  }
  void deliver(std::uint64_t generation, const std::vector<std::byte>& body) {
    gate.deliver(generation, body);
    actors.run();
  }
};

using order = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("frames of the open generation go to the actor that they name") {
  gate_and_receivers here;
  here.gate.open(2);
  here.deliver(2, frame(1));
  here.deliver(2, frame(2, {actor_role::device, 3}));
  CHECK(indices(here.scheduler) == order{1});
  CHECK(indices(here.device) == order{2});
}

TEST_CASE("a frame for an actor that this node does not have is dropped") {
  gate_and_receivers here;
  here.gate.open(2);
  here.deliver(2, frame(1, {actor_role::device, 4}));
  here.deliver(2, frame(1, {static_cast<actor_role>(99), 0}));
  CHECK(here.scheduler.size() == 0);
  CHECK(here.device.size() == 0);
}

TEST_CASE("frames of an older generation are dropped and counted") {
  gate_and_receivers here;
  here.gate.open(2);
  here.deliver(1, frame(1));
  CHECK(here.scheduler.size() == 0);
  CHECK(here.gate.num_stale() == 1);
}

TEST_CASE("frames of a newer generation are held, and delivered in order when it opens") {
  gate_and_receivers here;
  here.gate.open(1);
  here.deliver(2, frame(1));
  here.deliver(2, frame(2));
  here.deliver(1, frame(0));
  here.deliver(2, frame(3));
  CHECK(indices(here.scheduler) == order{0});
  here.gate.open(2);
  here.deliver(2, frame(4));
  CHECK(indices(here.scheduler) == order{0, 1, 2, 3, 4});
  CHECK(here.gate.num_stale() == 0);
}

TEST_CASE("frames of a generation that never opened are dropped with it") {
  gate_and_receivers here;
  here.deliver(2, frame(1));
  here.deliver(3, frame(2));
  here.deliver(4, frame(3));
  here.gate.open(3);
  here.actors.run();
  CHECK(indices(here.scheduler) == order{2});
  CHECK(here.gate.num_stale() == 1);
  here.gate.open(4);
  here.actors.run();
  CHECK(indices(here.scheduler) == order{2, 3});
}

TEST_CASE("held frames are delivered once") {
  gate_and_receivers here;
  here.deliver(2, frame(1));
  here.gate.open(2);
  here.gate.open(2);
  here.actors.run();
  CHECK(indices(here.scheduler) == order{1});
}

TEST_CASE("a held frame goes to the actor that has the name when its generation opens") {
  gate_and_receivers here;
  probe next(here.actors);
  here.deliver(2, frame(1));
  here.gate.bind(scheduler_name, next.handle());
  here.gate.open(2);
  here.actors.run();
  CHECK(here.scheduler.size() == 0);
  CHECK(indices(next) == order{1});
}

TEST_CASE("a closed gate delivers no frame") {
  gate_and_receivers here;
  here.gate.open(1);
  here.gate.close();
  here.deliver(1, frame(1));
  CHECK(here.scheduler.size() == 0);
}

TEST_CASE("a frame that is no message is refused on arrival, not when its generation opens") {
  gate_and_receivers here;
  std::vector<std::byte> bad(40, std::byte{0x5a});
  here.gate.open(1);
  CHECK_THROWS_AS(here.gate.deliver(1, bad), decode_error);
  CHECK_THROWS_AS(here.gate.deliver(2, bad), decode_error);
  here.deliver(2, frame(1));
  CHECK_NOTHROW(here.gate.open(2));
  here.actors.run();
  CHECK(indices(here.scheduler) == order{1});
}

TEST_CASE("a frame beyond the limit of frames held for later generations is refused") {
  gate_and_receivers here;
  for (std::size_t i = 0; i < inbound_gate::max_held; ++i) here.gate.deliver(2, frame(1));
  CHECK_THROWS_AS(here.gate.deliver(2, frame(1)), decode_error);
  CHECK_NOTHROW(here.gate.deliver(0, frame(1)));
}
