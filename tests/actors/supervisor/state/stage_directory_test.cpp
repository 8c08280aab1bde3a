#include "troupe/supervisor/state/stage_directory.hpp"

#include <catch2/catch_test_macros.hpp>

#include "actors/virtual_actors.hpp"
#include "troupe/messages/device.hpp"
#include "troupe/messages/gatherer.hpp"
#include "troupe/messages/peer_copy_store.hpp"
#include "troupe/messages/supervisor.hpp"

using namespace troupe;
using namespace troupe::actors::supervisor;
using namespace troupe::testing;

namespace {

/// Stages 2 and 3 live here, on two devices.
struct directory_and_receivers {
  virtual_actors actors;
  probe supervisor{actors}, peer_copy_store{actors}, first{actors}, second{actors}, gatherer{actors};
  stage_directory directory;
  directory_and_receivers() {
    directory.set(
        {supervisor.handle(),
         peer_copy_store.handle(),
         {{layout::cell{.stage = 2}, {first.handle()}}, {layout::cell{.stage = 3}, {second.handle()}}},
         gatherer.handle(),
         4});
  }
  void arrives(transport::tensor_role role, std::uint32_t stage, std::uint32_t call = 4) {
    directory.deliver({7, 5, call, stage, 1, role}, tensor::full({2}, 3));
    actors.run();
  }
  std::size_t num_delivered() const {
    return supervisor.size() + peer_copy_store.size() + first.size() + second.size() + gatherer.size();
  }
};

}  // namespace

TEST_CASE("activations and gradients go to the device of their stage") {
  directory_and_receivers here;
  here.arrives(transport::tensor_role::activation, 2);
  here.arrives(transport::tensor_role::gradient, 3);
  CHECK(here.first.last<actors::messages::tensor_arrived>().tag ==
        transport::tensor_tag{7, 5, 4, 2, 1, transport::tensor_role::activation});
  CHECK(here.second.last<actors::messages::tensor_arrived>().tag.role == transport::tensor_role::gradient);
  CHECK(here.second.last<actors::messages::tensor_arrived>().value.values<float>()[1] == 3);
  CHECK(here.num_delivered() == 2);
}

TEST_CASE("a tensor is its receiver's memory from its arrival on") {
  directory_and_receivers here;
  auto sender = memory_account::make(), receiver = memory_account::make();
  stage_directory::receivers known;
  known.devices = {{layout::cell{.stage = 2}, {here.first.handle(), receiver}}};
  here.directory.set(known);
  account_scope charged(sender);
  here.arrives(transport::tensor_role::activation, 2);
  CHECK(sender.statistics().current == 0);
  CHECK(receiver.statistics().by_use[static_cast<int>(memory_use::messages)] == 64);
}

TEST_CASE("what replicas add up within an action goes past the mailbox of the device that waits there") {
  directory_and_receivers here;
  auto receiver = memory_account::make();
  stage_directory::receivers known;
  auto arrived = std::make_shared<execution::arrivals>();
  known.devices = {{layout::cell{.stage = 2}, {here.first.handle(), receiver, arrived}}};
  here.directory.set(known);
  here.arrives(transport::tensor_role::replica_values, 2);
  here.arrives(transport::tensor_role::replica_values, 3);
  CHECK(here.num_delivered() == 0);
  CHECK(arrived->num_put() == 1);
  execution::inbox moved;
  CHECK(arrived->move_to(moved));
  CHECK(moved.take({7, 5, 4, 2, 1, transport::tensor_role::replica_values}));
  CHECK(receiver.statistics().peak == 64);
}

TEST_CASE("a device is told in its mailbox that gradients of replicas are there, once until it looks") {
  directory_and_receivers here;
  stage_directory::receivers known;
  auto arrived = std::make_shared<execution::arrivals>();
  known.devices = {{layout::cell{.stage = 2}, {here.first.handle(), {}, arrived}}};
  here.directory.set(known);
  here.arrives(transport::tensor_role::replica_gradients, 2);
  here.arrives(transport::tensor_role::summed_gradients, 2);
  CHECK(arrived->num_held() == 2);
  CHECK(here.first.all<actors::messages::replica_tensors_arrived>().size() == 1);
  execution::inbox moved;
  arrived->move_to(moved);
  CHECK(moved.num_held() == 2);
  here.arrives(transport::tensor_role::replica_gradients, 2, 5);
  CHECK(here.first.all<actors::messages::replica_tensors_arrived>().size() == 2);
}

TEST_CASE("a state to be restored goes to the supervisor, a copy of any stage to the peer copy store") {
  directory_and_receivers here;
  here.arrives(transport::tensor_role::restored_state, 2);
  here.arrives(transport::tensor_role::snapshot_part, 1);
  CHECK(here.supervisor.last<actors::messages::state_arrived>().part == layout::part_id{{.stage = 2}});
  CHECK(here.supervisor.last<actors::messages::state_arrived>().generation == 7);
  CHECK(here.supervisor.last<actors::messages::state_arrived>().step == 5);
  CHECK(here.peer_copy_store.last<actors::messages::replica_arrived>().part == layout::part_id{{.stage = 1}});
  CHECK(here.peer_copy_store.last<actors::messages::replica_arrived>().generation == 7);
  CHECK(here.num_delivered() == 2);
}

TEST_CASE("tensors without a receiver on this process are dropped") {
  directory_and_receivers here;
  here.arrives(transport::tensor_role::activation, 1);
  here.arrives(static_cast<transport::tensor_role>(99), 2);
  CHECK(here.num_delivered() == 0);
  here.directory.close();
  for (auto role : {transport::tensor_role::activation, transport::tensor_role::gradient,
                    transport::tensor_role::gathered, transport::tensor_role::snapshot_part,
                    transport::tensor_role::restored_state})
    here.arrives(role, 2);
  CHECK(here.num_delivered() == 0);
}

TEST_CASE("gathered tensors of any stage go to the gatherer") {
  directory_and_receivers here;
  here.arrives(transport::tensor_role::gathered, 2);
  here.arrives(transport::tensor_role::gathered, 9);
  CHECK(here.gatherer.all<actors::messages::tensor_gathered>().size() == 2);
  CHECK(here.gatherer.last<actors::messages::tensor_gathered>().call == 4);
  CHECK(here.gatherer.last<actors::messages::tensor_gathered>().index == 1);
  CHECK(here.num_delivered() == 2);
}

TEST_CASE("parts of a finished job are dropped") {
  directory_and_receivers here;
  here.arrives(transport::tensor_role::restored_state, 2, 3);
  here.arrives(transport::tensor_role::snapshot_part, 1, 3);
  CHECK(here.num_delivered() == 0);
}
