#include "troupe/transport/data_plane/outgoing_tensors.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <memory>

using namespace troupe;
using namespace troupe::transport;

namespace {

constexpr auto much = send_queue::max_bytes_in_flight;
constexpr std::uint64_t endless_bytes_per_s = std::numeric_limits<std::uint64_t>::max();

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

TEST_CASE("while a tensor is on an emulated link, all others wait, also those to other peers") {
  auto rate = std::make_shared<std::atomic<std::uint64_t>>(1);
  outgoing_tensors waiting(rate);
  CHECK_FALSE(waiting.may_go(1, gradients(0)));
  for (std::uint32_t port : {4U, 3U}) waiting.wait(1, outgoing(port));
  CHECK_FALSE(waiting.is_on_link());
  CHECK_FALSE(waiting.take());  // 4,000 bytes take more than an hour
  CHECK(waiting.is_on_link());
  waiting.wait(2, outgoing(1));
  CHECK_FALSE(waiting.take());
  CHECK(waiting.has_waiting());
}

TEST_CASE("over an emulated link tensors go one after the other by need") {
  auto rate = std::make_shared<std::atomic<std::uint64_t>>(endless_bytes_per_s);
  outgoing_tensors waiting(rate);
  waiting.wait(1, outgoing(4));
  waiting.wait(2, outgoing(3));
  waiting.wait(1, outgoing(2));
  CHECK(taken(waiting) == sent_to(1, 2));
  CHECK(taken(waiting) == sent_to(2, 3));
  CHECK(taken(waiting) == sent_to(1, 4));
  CHECK_FALSE(waiting.has_waiting());
}

TEST_CASE("all that waits can be dropped, also what is on the link") {
  auto rate = std::make_shared<std::atomic<std::uint64_t>>(1);
  outgoing_tensors waiting(rate);
  for (std::uint32_t port : {2U, 1U}) waiting.wait(1, outgoing(port));
  waiting.wait(2, outgoing(3));
  CHECK_FALSE(waiting.take());
  auto dropped = waiting.drop();
  REQUIRE(dropped.size() == 3);
  CHECK(dropped[0].second.tag.port == 1);  // it was on the link
  CHECK(dropped[1].second.tag.port == 2);
  CHECK(dropped[2].first == 2);
  CHECK_FALSE(waiting.has_waiting());
  CHECK_FALSE(waiting.is_on_link());
}
