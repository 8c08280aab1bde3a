#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <random>
#include <thread>

#include "troupe/transport/tensor_header.hpp"
#include "troupe/ucx/ucx_library.hpp"
#include "unauthenticated_peers.hpp"

using namespace troupe::testing;

namespace {

/// Rank 2 has another secret, so all processes refuse its messages and it refuses theirs.
void wrong_secret(test_rank& self) {
  auto options = test_options(self.rank());
  if (self.rank() == 2) options.secret = test_secret(1);
  ucx_process process(self, options);
  process.join_all();
  self.barrier(1);
  for (int peer = 0; peer < 3; ++peer) {
    if (peer == self.rank()) continue;
    process.link().send_tensor(peer, {1}, pattern(100, 1));
    process.link().send_tensor(peer, {1}, pattern(100000, 1));
    process.link().send_control(peer, 1, greeting);
  }
  auto num_unauthenticated = self.rank() == 2 ? 2U : 1U;
  auto errors = process.events.take_errors(num_unauthenticated);
  for (const auto& error : errors)
    expect((error.rank == 2) != (self.rank() == 2), "an error of the other secret");
  if (self.rank() != 2) {
    expect(process.events.take_controls().front().from == 1 - self.rank(), "the friend's message");
    expect(process.events.take_tensors(2).front().from == 1 - self.rank(), "the friend's tensors");
  }
  // Of each unauthenticated peer a greeting and two tensors. No event comes with a bad frame; if they are not
  // counted, the deadline of spawn_ranks strikes.
  while (process.link().statistics().bad_frames < 3 * num_unauthenticated) std::this_thread::yield();
  self.barrier(2);
  expect(process.events.error_count() == 0, "one error a connection");
  expect(process.link().statistics().tensors_received == (self.rank() == 2 ? 0 : 2),
         "no tensor of the other secret");
  self.barrier(3);
}

void verified(test_rank& self) {
  auto options = test_options(self.rank());
  options.verify_frames = true;
  ucx_process process(self, options);
  process.join_all();
  if (self.rank() == 0) {
    process.link().send_tensor(1, {1, 1}, pattern(100, 1));
    process.link().send_tensor(1, {1, 2}, pattern(1 << 20, 2));
    self.wait_for(1, 1);
    self.stop(1);  // so that the fetch comes after the change
    auto changing = pattern(1 << 20, 3);
    process.link().send_tensor(1, {1, 3}, changing);
    changing.values<std::uint8_t>()[777] ^= 1;
    self.resume(1);
  } else {
    for (const auto& received : process.events.take_tensors(2))
      expect(same_bytes(received.value, pattern(received.value.size_bytes(), received.tag.step)),
             "what was sent");
    self.post(1);
    auto error = process.events.take_errors().front();
    expect(error.rank == 0 && error.cause.find("not authentic") != std::string::npos, "the cause");
    expect(process.link().statistics().bad_frames == 1 && process.link().statistics().tensors_received == 2,
           "it counted");
  }
  self.barrier(2);
}

/// Bytes that are no frames, a connection each.
void send_control_garbage(const troupe::transport::process_address& address, int count) {
  std::mt19937_64 random(1);
  for (int i = 0; i < count; ++i) {
    unauthenticated_peer caller(address);
    caller.send(pattern(troupe::messaging::reply_bytes + random() % 5000, random()).bytes());
    caller.wait_until_closed();
  }
}

/// More unauthenticated peers than a process allows, which send nothing.
void connect_silently(const troupe::transport::process_address& address) {
  std::vector<std::unique_ptr<unauthenticated_peer>> callers;
  for (int i = 0; i < 80; ++i) callers.push_back(std::make_unique<unauthenticated_peer>(address));
  callers.front()->wait_until_closed();
}

/// A sealed tensor frame for rank 0 in generation 5, or almost.
struct forged_tensor {
  troupe::transport::receiver_nonce nonce;
  std::uint64_t generation = 5;
  std::uint64_t tag_generation = 5;
  std::uint32_t to_rank = 0;
  std::int64_t extent = 1000;

  troupe::messaging::authentication_code connection_code(std::uint32_t receiver) const {
    return troupe::transport::connection_code(troupe::messaging::frame_authenticator(test_secret()), nonce,
                                              generation, 1, receiver);
  }
  std::vector<std::byte> head() const {
    std::vector<std::byte> head;
    troupe::shape extents{extent};
    auto rest = troupe::messaging::begin_frame(
        {troupe::messaging::frame_kind::tensor, 1, to_rank, generation, 1, 1000},
        troupe::transport::tensor_header_bytes(extents, {}), head);
    troupe::transport::write_tensor_header({tag_generation, 77}, troupe::dtype::u8, extents, {}, rest);
    rest.put(connection_code(to_rank));
    return head;
  }
};

/// Rank 1 knows the secret and sends authentic frames that do not belong where they arrive.
void misplaced_frames(test_rank& self) {
  if (self.rank() == 0) {
    ucx_process process(self);
    process.join(5, {0});
    expect(process.events.take_tensors().front().tag.generation == 5, "the tensor of this generation");
    expect(process.events.take_tensors().front().tag.generation == 6, "the tensor of a later generation");
    self.wait_for(1, 1);
    while (process.link().statistics().bad_frames < 4) std::this_thread::yield();
    auto lost = process.events.take_losses(4);
    expect(lost[0].rank == -1 && lost[1].rank == -1 && lost[3].rank == -1,
           "a head that is not authentic shows no sender");
    expect(lost[2].rank == 1 && lost[2].cause.find("does not match its size") != std::string::npos,
           "the loss of a tensor of the job is told at once, with its sender");
    expect(process.link().statistics().stale_frames == 1, "the tensor of an older generation counted");
    expect(process.link().statistics().tensors_received == 2, "nothing else delivered");
    self.post(2);
  } else {
    auto address = address_posted(self, 0, 5);
    unauthenticated_sender to_data(address);
    auto elements = pattern(1000, 1);
    auto nonce = nonce_in(address);
    for (const auto& forged :
         {forged_tensor{nonce, 4, 4}, forged_tensor{nonce, 5, 4}, forged_tensor{.nonce = nonce, .to_rank = 1},
          forged_tensor{.nonce = nonce, .extent = 999}, forged_tensor{troupe::transport::receiver_nonce{}},
          forged_tensor{nonce}, forged_tensor{nonce, 6, 6}})
      to_data.send(forged.head(), elements.bytes(), 0);
    self.post(1);
    self.wait_for(0, 2);
  }
}

/// Rank 1 knows the secret, but does not keep to the rules of control connections.
void misbehaving_clients(test_rank& self) {
  ucx_process process(self);
  auto own = meet(process, self.rank());
  self.barrier(1);
  if (self.rank() == 1) {
    auto address = process.address_of(0, 1);
    auto refused = [&](auto act) {
      unauthenticated_peer caller(address);
      caller.shake_hands();
      act(caller);
      caller.wait_until_closed();
    };
    refused([&](auto& caller) { caller.send_frame(1, {}); });                           // no introduction
    refused([&](auto& caller) { caller.send_frame(0, std::vector<std::byte>(32)); });   // for another process
    refused([&](auto& caller) { caller.send_frame(0, caller.introduction(own), 2); });  // for another rank
    refused([&](auto& caller) {
      caller.send(forged_tensor{.nonce = {}, .extent = 0}.head());
    });  // not a control frame
    expect(process.events.error_count() == 0, "the real connection is still there");
    unauthenticated_peer caller(address);
    caller.shake_hands();
    caller.send_frame(0, caller.introduction(own));  // takes the place of the real connection
    caller.send_frame(1, {});
    caller.send_frame(3, {});
    caller.wait_until_closed();
  } else {
    expect(process.events.take_controls().front().body == greeting, "the one message that was in order");
    auto error = process.events.take_errors().front();
    expect(error.rank == 1 && error.cause.find("out of order") != std::string::npos, "the cause");
    expect(process.link().statistics().bad_frames == 5, "each bad frame counted");
  }
  self.barrier(2);
}

void survive_garbage(test_rank& self) {
  constexpr int count = 300;
  if (self.rank() == 2) {
    auto address = address_posted(self, 0, 1);
    connect_silently(address);
    send_control_garbage(address, count);
    unauthenticated_sender(address).send_garbage(count);
    self.post(1);
    self.wait_for(0, 2);
    return;
  }
  ucx_process process(self);
  process.join(1, {0, 1});
  self.wait_for(2, 1);
  process.link().send_control(1 - self.rank(), 1, greeting);
  process.link().send_tensor(1 - self.rank(), {1}, pattern(50000, 5));
  expect(process.events.take_controls().front().body == greeting, "the friend's message");
  expect(same_bytes(process.events.take_tensors().front().value, pattern(50000, 5)), "the friend's tensor");
  expect(process.events.error_count() == 0,
         "no process suspected because of an unauthenticated peer's bytes");
  if (self.rank() ==
      0)  // no event comes with a bad frame; if they are not counted, the deadline of spawn_ranks strikes
    while (process.link().statistics().bad_frames < 2 * count) std::this_thread::yield();
  self.post(2);
  self.wait_for(0, 2);
  self.wait_for(1, 2);
  expect(process.link().statistics().bad_frames == (self.rank() == 0 ? 2 * count : 0),
         "each bad frame counted once");
}

}  // namespace

TEST_CASE("a process with another secret is refused, reported once, and does not disturb other processes") {
  spawn_ranks(3, wrong_secret);
}

TEST_CASE("verified tensors that changed in transit are dropped and their connection is closed") {
  spawn_ranks(2, verified);
}

TEST_CASE("an unauthenticated peer's bytes are counted and dropped") { spawn_ranks(3, survive_garbage); }

TEST_CASE("authentic frames are dropped where they do not belong") { spawn_ranks(2, misplaced_frames); }

TEST_CASE("control connections of a process that violates the protocol are closed") {
  spawn_ranks(2, misbehaving_clients);
}

TEST_CASE("invalid transport options are refused with their name") {
  spawn_ranks(1, [](test_rank&) {
    event_recorder events;
    auto refuses = [&](const troupe::transport::ucx_transport_options& options, const std::string& word) {
      try {
        troupe::transport::make_ucx_transport(options, events);
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

TEST_CASE("UCX does not install its handler for SIGHUP") {
  troupe::ucx::configure_ucx_library();
  struct sigaction present {};
  ::sigaction(SIGHUP, nullptr, &present);
  CHECK((present.sa_handler == SIG_DFL || present.sa_handler == SIG_IGN));
}
