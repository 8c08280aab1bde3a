#include "troupe/transport/data_plane/outgoing_tensors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>

using namespace troupe;
using namespace troupe::transport;

namespace {

constexpr auto much = send_queue::max_bytes_in_flight;

/// Lets every tensor go at one time.
struct delay_until final : send_delay {
  explicit delay_until(time_point end) : when(end) {}
  bool is_on() const override { return is_used; }
  time_point end_of(std::size_t num_bytes, time_point) override {
    CHECK(num_bytes == 4000);
    return when;
  }
  bool is_used = true;
  time_point when;
};
constexpr auto never = send_delay::time_point::max(), at_once = send_delay::time_point::min();

tensor_tag gradients(std::uint32_t port) {
  return {.generation = 1, .step = 7, .stage = 1, .role = tensor_role::replica_gradients, .port = port};
}

outgoing_tensor outgoing(std::uint32_t port) {
  return {gradients(port), {}, tensor::zeros({1000}, dtype::f32)};
}

/// The rank and port of the next tensor.
std::pair<int, std::uint32_t> taken(outgoing_tensors& from) {
  auto next = from.take();
  REQUIRE(next);
  return {next->first, next->second.tag.port};
}

using sent_to = std::pair<int, std::uint32_t>;

}  // namespace

TEST_CASE("what is under way to one peer holds up the tensors to that peer only") {
  outgoing_tensors waiting(nullptr);
  CHECK(waiting.may_go(1, gradients(0)));
  waiting.begin(1, gradients(0), much);
  CHECK_FALSE(waiting.may_go(1, gradients(1)));
  CHECK(waiting.may_go(2, gradients(1)));
  waiting.wait(1, outgoing(1));
  CHECK(waiting.has_waiting());
  CHECK_FALSE(waiting.take());
  waiting.complete(1, gradients(0), much);
  CHECK(taken(waiting) == sent_to(1, 1));
  CHECK_FALSE(waiting.has_waiting());
  CHECK_FALSE(waiting.take());
}

TEST_CASE("while a tensor is delayed, all others wait, also those to other peers") {
  outgoing_tensors waiting(std::make_shared<delay_until>(never));
  CHECK_FALSE(waiting.may_go(1, gradients(0)));
  for (std::uint32_t port : {4U, 3U}) waiting.wait(1, outgoing(port));
  CHECK_FALSE(waiting.has_delayed());
  CHECK_FALSE(waiting.take());
  CHECK(waiting.has_delayed());
  waiting.wait(2, outgoing(1));
  CHECK_FALSE(waiting.take());
  CHECK(waiting.has_waiting());
}

TEST_CASE("tensors that are delayed go one after the other by need, also when delays end meanwhile") {
  auto delay = std::make_shared<delay_until>(at_once);
  outgoing_tensors waiting(delay);
  waiting.wait(1, outgoing(4));
  waiting.wait(2, outgoing(3));
  waiting.wait(1, outgoing(2));
  CHECK(taken(waiting) == sent_to(1, 2));
  delay->when = never;
  CHECK_FALSE(waiting.take());
  delay->is_used = false;
  CHECK_FALSE(waiting.take());  // this one is under way
  CHECK(waiting.drop().front().first == 2);
}

TEST_CASE("all that waits can be dropped, also what is delayed") {
  outgoing_tensors waiting(std::make_shared<delay_until>(never));
  for (std::uint32_t port : {2U, 1U}) waiting.wait(1, outgoing(port));
  waiting.wait(2, outgoing(3));
  CHECK_FALSE(waiting.take());
  auto dropped = waiting.drop();
  REQUIRE(dropped.size() == 3);
  CHECK(dropped[0].second.tag.port == 1);  // it was delayed
  CHECK(dropped[1].second.tag.port == 2);
  CHECK(dropped[2].first == 2);
  CHECK_FALSE(waiting.has_waiting());
  CHECK_FALSE(waiting.has_delayed());
}
