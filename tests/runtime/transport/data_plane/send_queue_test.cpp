#include "troupe/transport/data_plane/send_queue.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <thread>

#include "runtime/transport/ucx_process.hpp"

using namespace troupe;
using namespace troupe::transport;
using namespace troupe::testing;

namespace {

tensor_tag tag_of(tensor_role role, std::uint32_t port = 0, std::uint64_t step = 7, std::uint32_t stage = 1) {
  return {.generation = 1, .step = step, .stage = stage, .role = role, .port = port};
}

outgoing_tensor outgoing(const tensor_tag& tag, float value = 0) {
  return {tag, {}, tensor::full({1}, value)};
}

}  // namespace

TEST_CASE("what an action waits for goes first, then gradients by need, and copies of the state at last") {
  using enum tensor_role;
  for (auto role : {activation, gradient, reduction_partial, replica_values, restored_state})
    CHECK(send_order_of(tag_of(role)) < send_order_of(tag_of(replica_gradients)));
  CHECK(send_order_of(tag_of(replica_gradients, 3)) < send_order_of(tag_of(summed_gradients, 4)));
  CHECK(send_order_of(tag_of(replica_gradients, 9, 7, 1)) <
        send_order_of(tag_of(replica_gradients, 0, 7, 2)));
  CHECK(send_order_of(tag_of(replica_gradients, 9, 6, 2)) <
        send_order_of(tag_of(replica_gradients, 0, 7, 1)));
  CHECK(send_order_of(tag_of(summed_gradients, 9)) < send_order_of(tag_of(snapshot_part)));
}

TEST_CASE("a queue gives the tensors by need, equal ones as they came") {
  using enum tensor_role;
  send_queue queue;
  queue.put(outgoing(tag_of(snapshot_part), 1));
  queue.put(outgoing(tag_of(replica_gradients, 4), 2));
  queue.put(outgoing(tag_of(summed_gradients, 2), 3));
  queue.put(outgoing(tag_of(snapshot_part), 4));
  CHECK(queue.front().tag.role == summed_gradients);
  for (float expected : {3.0F, 2.0F, 1.0F, 4.0F}) CHECK(queue.take().value.values<float>()[0] == expected);
  CHECK(queue.empty());
}

TEST_CASE(
    "gradients wait while many are under way, copies of the state while much is, and nothing else does") {
  using enum tensor_role;
  constexpr auto much = send_queue::max_bytes_in_flight;
  bytes_in_flight now;
  now.add(tag_of(activation), 100 * much);
  for (auto role : {replica_gradients, summed_gradients, snapshot_part})
    CHECK(send_queue::may_go(tag_of(role), now));
  now.add(tag_of(snapshot_part), much);
  CHECK(send_queue::may_go(tag_of(summed_gradients), now));
  CHECK_FALSE(send_queue::may_go(tag_of(snapshot_part), now));
  now.subtract(tag_of(snapshot_part), 1);
  CHECK(send_queue::may_go(tag_of(snapshot_part), now));
  now.add(tag_of(replica_gradients), much);
  for (auto role : {replica_gradients, summed_gradients, snapshot_part})
    CHECK_FALSE(send_queue::may_go(tag_of(role), now));
  CHECK(send_queue::may_go(tag_of(activation), now));
  now.subtract(tag_of(summed_gradients), 1);
  CHECK(send_queue::may_go(tag_of(replica_gradients), now));
}

namespace {

/// The first tensor takes some time.
class slow_link final : public send_delay {
 public:
  explicit slow_link(std::chrono::seconds first) : first_(first) {}
  bool is_on() const override { return is_used; }
  time_point end_of(std::size_t, time_point) override {
    return std::chrono::steady_clock::now() + std::exchange(first_, std::chrono::seconds(0));
  }
  std::atomic<bool> is_used = true;

 private:
  std::chrono::seconds first_;
};

}  // namespace

TEST_CASE("over a slow link tensors that are needed sooner overtake those that came before") {
  spawn_ranks(2, [](test_rank& self) {
    auto options = test_options(self.rank());
    options.delay = std::make_shared<slow_link>(std::chrono::seconds(1));
    ucx_process node(self, options);
    node.join_all();
    using enum tensor_role;
    constexpr std::size_t piece_bytes = 100000;
    if (self.rank() == 0) {
      // The first one that goes is on the link for a second, the others for no time.
      for (std::uint32_t port : {5U, 4U, 3U, 2U, 1U})
        node.link().send_tensor(1, tag_of(replica_gradients, port), pattern(piece_bytes, port));
      node.link().send_tensor(1, tag_of(snapshot_part), pattern(piece_bytes, 6));
      node.link().send_tensor(1, tag_of(summed_gradients, 0), pattern(piece_bytes, 0));
      node.link().send_tensor(1, tag_of(activation, 7), pattern(piece_bytes, 7));
      self.wait_for(1, 1);
      return;
    }
    auto arrived = node.events.take_tensors(8);
    std::vector<std::uint32_t> ports;
    for (const auto& each : arrived) {
      auto number = each.tag.role == snapshot_part ? 6 : each.tag.port;
      expect(same_bytes(each.value, pattern(piece_bytes, number)), "what was sent");
      ports.push_back(number);
    }
    // One was on the link before the others came.
    std::vector<std::uint32_t> by_need{7, 0, 1, 2, 3, 4, 5, 6};
    std::erase(by_need, ports.front());
    ports.erase(ports.begin());
    expect(ports == by_need, "the order of need");
    self.post(1);
  });
}

TEST_CASE("more than may be under way at a time arrives whole") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process node(self);
    node.join_all();
    constexpr std::uint32_t count = 12;
    for (std::uint32_t port = 0; port < count; ++port)
      node.link().send_tensor(1 - self.rank(), tag_of(tensor_role::replica_gradients, count - port),
                              pattern(1000000, port));
    for (const auto& each : node.events.take_tensors(count))
      expect(same_bytes(each.value, pattern(1000000, count - each.tag.port)), "what was sent");
    self.barrier(1);
  });
}

TEST_CASE("what waits for a link is dropped with its generation") {
  spawn_ranks(2, [](test_rank& self) {
    auto options = test_options(self.rank());
    auto link = std::make_shared<slow_link>(std::chrono::hours(1));
    options.delay = link;
    ucx_process node(self, options);
    node.join_all();
    if (self.rank() == 0)
      for (std::uint32_t port : {1U, 2U})
        node.link().send_tensor(1, tag_of(tensor_role::replica_gradients, port), pattern(1000, port));
    if (self.rank() == 0) {
      auto sent = node.link().statistics().peers.at(1);
      expect(sent.tensors_sent == 2 && sent.tensors_in_flight == 2, "tensors that wait");
    }
    self.barrier(1);
    link->is_used = false;
    node.join_all(2);
    auto tag = tag_of(tensor_role::replica_gradients, 3);
    tag.generation = 2;
    if (self.rank() == 0) node.link().send_tensor(1, tag, pattern(1000, 3));
    if (self.rank() == 1) expect(node.events.take_tensors().front().tag.port == 3, "the new one only");
    self.barrier(3);
    if (self.rank() == 0) {
      while (node.link().statistics().peers.at(1).tensors_in_flight > 1) std::this_thread::yield();
      expect(node.link().statistics().peers.at(1).tensor_bytes_in_flight <= 1000, "none that waits");
    }
    self.barrier(2);
  });
}
