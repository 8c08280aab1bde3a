#include <fcntl.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <thread>

#include "troupe/transport/control_address.hpp"
#include "troupe/transport/repeated_head.hpp"
#include "troupe/transport/tensor_header.hpp"
#include "troupe/transport/ucx_context.hpp"
#include "troupe/transport/ucx_worker.hpp"
#include "troupe/wire/frame.hpp"
#include "troupe/wire/handshake.hpp"
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
  // Of each stranger a greeting and two tensors. No event comes with a bad frame; if they are not counted,
  // the deadline of spawn_ranks strikes.
  while (node.link().statistics().bad_frames < 3 * strangers) std::this_thread::yield();
  self.barrier(2);
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

/// Somebody who reached the data worker and speaks UCX, but not through a transport of ours.
class data_stranger {
 public:
  explicit data_stranger(const troupe::node_address& address, const std::string& transports = "sysv,cma")
      : context_(troupe::make_ucx_context(transports, "lo")), worker_(context_.get()) {
    auto params = troupe::endpoint_params(worker_address_in(address));
    troupe::check_ucx(ucp_ep_create(worker_.get(), &params, &endpoint_), "connect a stranger");
  }

  void send(std::span<const std::byte> head, std::span<const std::byte> body, std::uint32_t flags) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
    auto* request = ucp_am_send_nbx(endpoint_, 1, head.data(), head.size(), body.data(), body.size(), &param);
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) worker_.progress();
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }

  /// Bytes that are no frames, in every way they can be sent.
  void send_garbage(int count) {
    std::mt19937_64 random(2);
    for (int i = 0; i < count; ++i) {
      auto head = pattern(random() % 300, random());
      auto body = pattern(random() % 30000, random());
      std::uint32_t flags[] = {0, UCP_AM_SEND_FLAG_REPLY, UCP_AM_SEND_FLAG_RNDV, UCP_AM_SEND_FLAG_EAGER};
      send(head.bytes(), body.bytes(), flags[random() % 4]);
    }
  }

 private:
  troupe::ucx_context context_;
  troupe::ucx_worker worker_;
  ucp_ep_h endpoint_ = nullptr;
};

/// Somebody who reached the control port.
class control_stranger {
 public:
  explicit control_stranger(const troupe::node_address& address)
      : peer_(troupe::decode_control_address(address.control)), socket_(troupe::connect_to(peer_)) {
    ::fcntl(socket_.get(), F_SETFL, 0);  // from here on it may wait
  }
  void send(std::span<const std::byte> bytes) {
    ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    sent_.insert(sent_.end(), bytes.begin(), bytes.end());
  }
  /// All bytes that went out so far.
  const std::vector<std::byte>& sent() const { return sent_; }
  void wait_until_closed() {
    std::byte byte;
    while (::recv(socket_.get(), &byte, 1, 0) > 0) {
    }
  }
  /// Proves that it knows the secret.
  void shake_hands() {
    std::array<std::byte, troupe::greeting_bytes> greeting;
    ::recv(socket_.get(), greeting.data(), greeting.size(), MSG_WAITALL);
    auto nonce = troupe::make_nonce();
    auto secret = test_secret();
    auto keys = troupe::answer_greeting(greeting, secret, troupe::control_protocol, nonce);
    send(troupe::reply_of(keys, nonce));
    std::array<std::byte, troupe::verdict_bytes> verdict;
    ::recv(socket_.get(), verdict.data(), verdict.size(), MSG_WAITALL);
    expect(verdict[0] == troupe::verdict_accepted, "the secret is known");
    key_.emplace(keys.key_of(troupe::handshake_role::initiator));
  }
  /// A control frame of rank 1 for rank 0, sealed with the connection's key.
  void send_frame(std::uint64_t sequence, std::span<const std::byte> extension, std::uint32_t to_rank = 0) {
    troupe::frame_header header{troupe::frame_kind::control, 1, to_rank, 1, sequence, greeting.size()};
    auto body = std::span(greeting).first(sequence == 0 ? 0 : greeting.size());
    header.body_bytes = body.size();
    send(troupe::seal_frame(*key_, header, extension, body));
    send(body);
  }
  /// What a connection of process `from` begins with.
  std::vector<std::byte> introduction(const troupe::process_id& from) const {
    std::vector<std::byte> bytes(peer_.process.begin(), peer_.process.end());
    bytes.insert(bytes.end(), from.begin(), from.end());
    return bytes;
  }

 private:
  troupe::control_address peer_;
  troupe::unique_fd socket_;
  std::vector<std::byte> sent_;
  std::optional<troupe::frame_authenticator> key_;
};

/// Bytes that are no frames, a connection each.
void send_control_garbage(const troupe::node_address& address, int count) {
  std::mt19937_64 random(1);
  for (int i = 0; i < count; ++i) {
    control_stranger caller(address);
    caller.send(pattern(troupe::reply_bytes + random() % 5000, random()).bytes());
    caller.wait_until_closed();
  }
}

/// More strangers than a node bears, who say nothing.
void call_in_silence(const troupe::node_address& address) {
  std::vector<std::unique_ptr<control_stranger>> callers;
  for (int i = 0; i < 80; ++i) callers.push_back(std::make_unique<control_stranger>(address));
  callers.front()->wait_until_closed();
}

troupe::node_address address_posted(test_rank& self, int process, std::uint64_t generation) {
  auto [control, data] = troupe::decode<std::pair<std::vector<std::byte>, std::vector<std::byte>>>(
      self.wait_for(process, 1000 + static_cast<int>(generation)));
  return {control, data};
}

/// A sealed tensor frame for rank 0 in generation 5, or almost.
struct forged_tensor {
  troupe::receiver_nonce nonce;
  std::uint64_t generation = 5;
  std::uint64_t tag_generation = 5;
  std::uint32_t to_rank = 0;
  std::int64_t extent = 1000;

  troupe::authentication_code connection_code(std::uint32_t receiver) const {
    return troupe::connection_code(troupe::frame_authenticator(test_secret()), nonce, generation, 1, receiver);
  }
  std::vector<std::byte> head() const {
    std::vector<std::byte> head;
    troupe::shape extents{extent};
    auto rest = troupe::begin_frame({troupe::frame_kind::tensor, 1, to_rank, generation, 1, 1000},
                                    troupe::tensor_header_bytes(extents, {}), head);
    troupe::write_tensor_header({tag_generation, 77}, troupe::dtype::u8, extents, {}, rest);
    rest.put(connection_code(to_rank));
    return head;
  }
};

/// Rank 1 knows the secret and sends authentic frames that do not belong where they arrive.
void misplaced_frames(test_rank& self) {
  if (self.rank() == 0) {
    ucx_node node(self);
    node.join(5, {0});
    expect(node.events.take_tensors().front().tag.generation == 5, "the tensor of this generation");
    expect(node.events.take_tensors().front().tag.generation == 6, "the tensor of a later generation");
    self.wait_for(1, 1);
    while (node.link().statistics().bad_frames < 4) std::this_thread::yield();
    expect(node.link().statistics().stale_frames == 1, "the tensor of an older generation counted");
    expect(node.link().statistics().tensors_received == 2, "nothing else delivered");
    self.post(2);
  } else {
    auto address = address_posted(self, 0, 5);
    data_stranger to_data(address);
    auto elements = pattern(1000, 1);
    auto nonce = nonce_in(address);
    for (const auto& forged :
         {forged_tensor{nonce, 4, 4}, forged_tensor{nonce, 5, 4}, forged_tensor{.nonce = nonce, .to_rank = 1},
          forged_tensor{.nonce = nonce, .extent = 999}, forged_tensor{troupe::receiver_nonce{}},
          forged_tensor{nonce}, forged_tensor{nonce, 6, 6}})
      to_data.send(forged.head(), elements.bytes(), 0);
    self.post(1);
    self.wait_for(0, 2);
  }
}

/// Rank 1 repeats a tensor of its own that arrived, and then what it never sent.
void misplaced_repetitions(test_rank& self) {
  if (self.rank() == 0) {
    ucx_node node(self);
    node.join(5, {0});
    auto whole = node.events.take_tensors().front(), repeated = node.events.take_tensors().front();
    auto tag = whole.tag;
    tag.step = 78;
    tag.microbatch = 9;
    expect(repeated.from == 1 && repeated.tag == tag, "another step and microbatch, else the same");
    expect(same_bytes(repeated.value, pattern(1000, 2)), "its own elements");
    self.wait_for(1, 1);
    while (node.link().statistics().bad_frames < 5) std::this_thread::yield();
    expect(node.link().statistics().tensors_received == 2, "nothing else delivered");
    self.post(2);
  } else {
    auto address = address_posted(self, 0, 5);
    data_stranger to_data(address);
    forged_tensor forged{nonce_in(address)};
    auto code = troupe::half_of(forged.connection_code(0));
    auto send = [&](const troupe::repeated_head& repeated, std::size_t size_bytes) {
      std::vector<std::byte> head;
      troupe::write_repeated_head(repeated, head);
      to_data.send(head, pattern(size_bytes, 2).bytes(), 0);
    };
    send({1, 1, code, 78, 9}, 1000);  // of nothing yet
    to_data.send(forged.head(), pattern(1000, 1).bytes(), 0);
    send({1, 1, code, 78, 9}, 1000);
    send({1, 1, code ^ 1, 78, 9}, 1000);  // by one who does not know the secret
    send({2, 1, code, 78, 9}, 1000);      // of a tensor that was not sent
    send({1, 3, code, 78, 9}, 1000);      // by one who sent nothing
    send({1, 1, code, 78, 9}, 999);       // of another size
    self.post(1);
    self.wait_for(0, 2);
  }
}

/// Rank 1 knows the secret, but does not keep to the rules of control connections.
void ill_mannered_callers(test_rank& self) {
  ucx_node node(self);
  auto own = troupe::decode_control_address(node.begin(1).control).process;
  node.connect(1, {0, 1});
  self.barrier(1);
  if (self.rank() == 1) {
    auto address = node.address_of(0, 1);
    auto refused = [&](auto act) {
      control_stranger caller(address);
      caller.shake_hands();
      act(caller);
      caller.wait_until_closed();
    };
    refused([&](auto& caller) { caller.send_frame(1, {}); });                           // no introduction
    refused([&](auto& caller) { caller.send_frame(0, std::vector<std::byte>(32)); });   // for another process
    refused([&](auto& caller) { caller.send_frame(0, caller.introduction(own), 2); });  // for another rank
    refused([&](auto& caller) { caller.send(forged_tensor{.nonce = {}, .extent = 0}.head()); });     // not a control frame
    expect(node.events.error_count() == 0, "the real connection is still there");
    control_stranger caller(address);
    caller.shake_hands();
    caller.send_frame(0, caller.introduction(own));  // takes the place of the real connection
    caller.send_frame(1, {});
    caller.send_frame(3, {});
    caller.wait_until_closed();
  } else {
    expect(node.events.take_controls().front().body == greeting, "the one message that was in order");
    auto error = node.events.take_errors().front();
    expect(error.rank == 1 && error.cause.find("out of order") != std::string::npos, "the cause");
    expect(node.link().statistics().bad_frames == 5, "each bad frame counted");
  }
  self.barrier(2);
}

void survive_garbage(test_rank& self) {
  constexpr int count = 300;
  if (self.rank() == 2) {
    auto address = address_posted(self, 0, 1);
    call_in_silence(address);
    send_control_garbage(address, count);
    data_stranger(address).send_garbage(count);
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
  if (self.rank() ==
      0)  // no event comes with a bad frame; if they are not counted, the deadline of spawn_ranks strikes
    while (node.link().statistics().bad_frames < 2 * count) std::this_thread::yield();
  self.post(2);
  self.wait_for(0, 2);
  self.wait_for(1, 2);
  expect(node.link().statistics().bad_frames == (self.rank() == 0 ? 2 * count : 0),
         "each bad frame counted once");
}

}  // namespace

TEST_CASE("a node with another secret is refused, reported once, and harms nobody else") {
  spawn_ranks(3, wrong_secret);
}

TEST_CASE("verified tensors that changed on the way are dropped and cost the connection") {
  spawn_ranks(2, verified);
}

TEST_CASE("a stranger's bytes are counted and dropped") { spawn_ranks(3, survive_garbage); }

TEST_CASE("authentic frames are dropped where they do not belong") { spawn_ranks(2, misplaced_frames); }

TEST_CASE("a head that repeats what was not sent is dropped") { spawn_ranks(2, misplaced_repetitions); }

TEST_CASE("a node that does not keep to the rules of control connections loses them") {
  spawn_ranks(2, ill_mannered_callers);
}

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
