#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "event_recorder.hpp"
#include "troupe/transport/loopback_transport.hpp"

using namespace troupe::testing;

namespace {

troupe::tensor sample() { return troupe::tensor::from(std::vector<float>{1, 2, 3}, {3}); }

struct loopback {
  event_recorder events;
  std::unique_ptr<troupe::transport::transport> link = troupe::transport::make_loopback_transport(events);
};

}  // namespace

TEST_CASE("over loopback a tensor is handed over, not copied") {
  loopback local;
  local.link->connect(1, {{0, local.link->begin_generation(1)}});
  auto sent = sample();
  troupe::transport::tensor_tag tag{1, 5, 0, 2, 3, troupe::transport::tensor_role::gradient};
  local.link->send_tensor(0, tag, sent);
  auto received = local.events.take_tensors().front();
  CHECK(received.from == 0);
  CHECK(received.tag == tag);
  CHECK(received.value.bytes().data() == sent.bytes().data());
}

TEST_CASE("over loopback a control message arrives with its generation") {
  loopback local;
  std::vector<std::byte> body = {std::byte{1}, std::byte{2}};
  local.link->send_control(0, 9, body);
  auto received = local.events.take_controls().front();
  CHECK((received.from == 0 && received.generation == 9 && received.body == body));
  local.link->send_control(1, 9, body);
  CHECK(local.link->statistics().control_frames_sent == 1);
}

TEST_CASE(
    "over loopback tensors of another generation are dropped and counted, and none pass before connect") {
  loopback local;
  auto address = local.link->begin_generation(1);
  local.link->send_tensor(0, {1}, sample());
  local.link->connect(1, {{0, address}});
  local.link->send_tensor(0, {1, 7}, sample());
  local.link->begin_generation(2);
  local.link->send_tensor(0, {1}, sample());
  local.link->send_tensor(0, {3}, sample());
  local.link->connect(2, {{0, address}});
  local.link->send_tensor(0, {2, 8}, sample());
  auto received = local.events.take_tensors(2);
  CHECK((received[0].tag.step == 7 && received[1].tag.step == 8));
  auto counted = local.link->statistics();
  CHECK((counted.stale_frames == 2 && counted.tensors_sent == 2 && counted.tensor_bytes_received == 24));
}

TEST_CASE("generations only increase, and the connected one is the one that was begun") {
  using Catch::Matchers::ContainsSubstring;
  loopback local;
  local.link->begin_generation(3);
  CHECK_THROWS_WITH(local.link->begin_generation(3), ContainsSubstring("above 3"));
  CHECK_THROWS_WITH(local.link->connect(2, {}), ContainsSubstring("begun last, 3"));
  CHECK_THROWS_AS(local.link->send_tensor(0, {3}, troupe::tensor()), std::invalid_argument);
}
