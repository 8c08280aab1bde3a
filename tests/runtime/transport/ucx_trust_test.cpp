#include <catch2/catch_test_macros.hpp>
#include <random>
#include <thread>

#include "troupe/transport/ucx_context.hpp"
#include "troupe/transport/ucx_worker.hpp"
#include "ucx_node.hpp"

using namespace troupe::testing;

namespace {

const std::vector<std::byte> greeting = {std::byte{'h'}, std::byte{'i'}};

/// Rank 2 has another secret, so nobody believes it and it believes nobody.
void wrong_secret(test_rank& self) {
  auto options = test_options(self.rank());
  if (self.rank() == 2) options.secret = test_secret(1);
  ucx_node node(self, options);
  node.join_all();
  self.barrier(1);
  for (int peer = 0; peer < 3; ++peer) {
    if (peer == self.rank()) continue;
    node.link().send_tensor(peer, {1}, pattern(100, 1));
    node.link().send_tensor(peer, {1}, pattern(100000, 1));
    node.link().send_control(peer, 1, greeting);
  }
  auto strangers = self.rank() == 2 ? 2U : 1U;
  auto errors = node.events.take_errors(strangers);
  for (const auto& error : errors)
    expect((error.rank == 2) != (self.rank() == 2), "an error of the other secret");
  if (self.rank() != 2) {
    expect(node.events.take_controls().front().from == 1 - self.rank(), "the friend's message");
    expect(node.events.take_tensors(2).front().from == 1 - self.rank(), "the friend's tensors");
  }
  self.barrier(2);
  expect(node.link().statistics().bad_frames >= 2, "bad frames counted");
  expect(node.events.error_count() == 0, "one error a connection");
  expect(node.link().statistics().tensors_received == (self.rank() == 2 ? 0 : 2),
         "no tensor of the other secret");
  self.barrier(3);
}

void verified(test_rank& self) {
  auto options = test_options(self.rank());
  options.verify_frames = true;
  ucx_node node(self, options);
  node.join_all();
  if (self.rank() == 0) {
    node.link().send_tensor(1, {1, 1}, pattern(100, 1));
    node.link().send_tensor(1, {1, 2}, pattern(1 << 20, 2));
    self.wait_for(1, 1);
    self.stop(1);  // so that the fetch comes after the change
    auto changing = pattern(1 << 20, 3);
    node.link().send_tensor(1, {1, 3}, changing);
    changing.values<std::uint8_t>()[777] ^= 1;
    self.resume(1);
  } else {
    for (const auto& received : node.events.take_tensors(2))
      expect(same_bytes(received.value, pattern(received.value.size_bytes(), received.tag.step)),
             "what was sent");
    self.post(1);
    auto error = node.events.take_errors().front();
    expect(error.rank == 0 && error.cause.find("not authentic") != std::string::npos, "the cause");
    expect(node.link().statistics().bad_frames == 1 && node.link().statistics().tensors_received == 2,
           "it counted");
  }
  self.barrier(2);
}

/// Somebody without the secret who reached the ports, and sends bytes that are no frames.
class stranger {
 public:
  explicit stranger(const std::string& transports)
      : context_(troupe::make_ucx_context(transports, "lo")), worker_(context_.get()) {}

  void send_garbage(const std::vector<std::byte>& address, int count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    auto params = troupe::endpoint_params(address);
    ucp_ep_h endpoint = nullptr;
    troupe::check_ucx(ucp_ep_create(worker_.get(), &params, &endpoint), "connect a stranger");
    for (int i = 0; i < count; ++i) {
      auto head = pattern(random() % 300, random());
      auto body = pattern(random() % 30000, random());
      std::uint32_t flags[] = {0, UCP_AM_SEND_FLAG_REPLY, UCP_AM_SEND_FLAG_RNDV, UCP_AM_SEND_FLAG_EAGER};
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = flags[random() % 4];
      auto head_bytes = head.bytes(), body_bytes = body.bytes();
      auto* request = ucp_am_send_nbx(endpoint, 1, head_bytes.data(), head_bytes.size(), body_bytes.data(),
                                      body_bytes.size(), &param);
      while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS)
        worker_.progress();
      if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
    }
  }

 private:
  troupe::ucx_context context_;
  troupe::ucx_worker worker_;
};

void survive_garbage(test_rank& self) {
  constexpr int count = 300;
  if (self.rank() == 2) {
    auto [control, data] =
        troupe::decode<std::pair<std::vector<std::byte>, std::vector<std::byte>>>(self.wait_for(0, 1001));
    stranger over_tcp("tcp"), over_memory("sysv,cma,tcp");
    over_tcp.send_garbage(control, count, 1);
    over_memory.send_garbage(data, count, 2);
    self.post(1);
    self.wait_for(0, 2);
    return;
  }
  ucx_node node(self);
  node.join(1, {0, 1});
  self.wait_for(2, 1);
  node.link().send_control(1 - self.rank(), 1, greeting);
  node.link().send_tensor(1 - self.rank(), {1}, pattern(50000, 5));
  expect(node.events.take_controls().front().body == greeting, "the friend's message");
  expect(same_bytes(node.events.take_tensors().front().value, pattern(50000, 5)), "the friend's tensor");
  expect(node.events.error_count() == 0, "nobody suspected for what a stranger did");
  if (self.rank() == 0)  // no event comes with a bad frame; if they are not counted, the deadline of spawn_ranks strikes
    while (node.link().statistics().bad_frames < 2 * count) std::this_thread::yield();
  self.post(2);
  self.wait_for(0, 2);
  self.wait_for(1, 2);
  expect(node.link().statistics().bad_frames == (self.rank() == 0 ? 2 * count : 0), "each bad frame counted once");
}

}  // namespace

TEST_CASE("a node with another secret is refused, reported once, and harms nobody else") {
  spawn_ranks(3, wrong_secret);
}

TEST_CASE("verified tensors that changed on the way are dropped and cost the connection") {
  spawn_ranks(2, verified);
}

TEST_CASE("a stranger's bytes are counted and dropped") { spawn_ranks(3, survive_garbage); }

TEST_CASE("options that cannot work are refused with their name") {
  spawn_ranks(1, [](test_rank&) {
    event_recorder events;
    auto refuses = [&](const troupe::ucx_transport_options& options, const std::string& word) {
      try {
        troupe::make_ucx_transport(options, events);
      } catch (const std::exception& refusal) {
        return std::string(refusal.what()).find(word) != std::string::npos;
      }
      return false;
    };
    auto options = test_options(0);
    options.secret.resize(15);
    expect(refuses(options, "16 bytes"), "a short secret refused");
    options = test_options(0);
    options.interface = "nosuch0";
    expect(refuses(options, "nosuch0"), "an unknown interface refused");
    options = test_options(0);
    options.data_transports = "pigeon";
    expect(refuses(options, "pigeon"), "an unknown transport refused");
  });
}
