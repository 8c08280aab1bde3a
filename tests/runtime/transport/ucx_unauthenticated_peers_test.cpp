#include <dirent.h>
#include <poll.h>
#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <list>
#include <thread>

#include "troupe/messaging/tcp_socket.hpp"
#include "troupe/transport/data_plane/header_writer.hpp"
#include "unauthenticated_peers.hpp"

using namespace troupe::testing;

namespace {

/// Rank 1's connection to rank 0, made by one who knows the secret, and then all its bytes again, on
/// connections of their own.
void replayed_greetings(test_rank& self) {
  ucx_process process(self);
  auto own = meet(process, self.rank());
  self.barrier(1);
  if (self.rank() == 1) {
    unauthenticated_peer first(process.address_of(0, 1));
    first.shake_hands();
    first.send_frame(0, first.introduction(own));  // takes the place of the real connection
    first.send_frame(1, {});
    self.wait_for(0, 2);
    for (int i = 0; i < 33; ++i) {
      unauthenticated_peer replay(process.address_of(0, 1));
      replay.send(first.sent());
      replay.wait_until_closed();
    }
    first.send_frame(2, {});
    self.wait_for(0, 3);
  } else {
    expect(process.events.take_controls().front().body == greeting, "the message");
    self.post(2);
    expect(process.events.take_controls().front().body == greeting, "the one after the replays");
    expect(process.events.error_count() == 0, "no peer lost");
    expect(process.link().statistics().control_frames_received == 3, "nothing twice");
    expect(process.link().statistics().bad_frames == 33, "each replay counted");
    self.post(3);
  }
  self.barrier(4);
}

/// A tensor that came over TCP, where any process of the network can reach the port, comes again.
void replayed_tensor(test_rank& self) {
  auto options = test_options(self.rank());
  options.data_transports = "tcp";
  if (self.rank() == 0) {
    ucx_process process(self, options);
    process.join(5, {0});
    process.events.take_tensors(2);
    while (process.link().statistics().bad_frames < 3) std::this_thread::yield();
    expect(process.link().statistics().tensors_received == 2, "each once");
    self.post(1);
    return;
  }
  auto address = address_posted(self, 0, 5);
  unauthenticated_sender to_data(address, "tcp");
  auto secret = test_secret();
  troupe::transport::plane_settings settings{1,     secret, troupe::messaging::frame_authenticator(secret),
                                             false, false,  {}};
  troupe::transport::header_writer headers(settings, 5, 0, nonce_in(address));
  auto elements = pattern(1000, 1);
  std::vector<std::byte> first, second;
  auto body = std::as_const(elements).bytes();
  headers.write({5, 1}, {}, elements, body, first);
  headers.write({5, 2}, {}, elements, body, second);
  for (const auto& head : {first, first, second, first, second}) to_data.send(head, elements.bytes(), 0);
  self.wait_for(0, 1);
}

/// More unauthenticated peers than rank 0 has descriptors for, which send nothing and stay.
std::list<unauthenticated_peer> connect_silently(const troupe::transport::process_address& address,
                                                 int count) {
  std::list<unauthenticated_peer> callers;
  for (int i = 0; i < count; ++i) callers.emplace_back(address);
  return callers;
}

int num_descriptors() {
  int count = 0;
  auto* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder)) ++count;
  ::closedir(folder);
  return count;
}

void few_descriptors(test_rank& self) {
  if (self.rank() == 2) {
    auto callers = connect_silently(address_posted(self, 0, 1), 200);
    self.post(1);
    self.wait_for(0, 2);
    return;
  }
  ucx_process process(self);
  process.begin(1);
  if (self.rank() == 0) {
    auto few = static_cast<rlim_t>(num_descriptors()) + 20;
    rlimit limit{few, few};
    expect(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "descriptors limited");
  }
  self.wait_for(2, 1);
  process.connect(1, {0, 1});
  process.link().send_control(1 - self.rank(), 1, greeting);
  expect(process.events.take_controls().front().body == greeting, "the friend's message");
  expect(process.events.error_count() == 0, "no peer lost");
  self.post(2);
  self.wait_for(1 - self.rank(), 2);
}

/// The members of a large world connect before rank 0 knows them, and shake hands late.
void many_members(test_rank& self) {
  if (self.rank() == 0) {
    auto options = test_options(0);
    options.world_size = 200;
    ucx_process process(self, options);
    process.begin(1);
    self.wait_for(1, 2);
    return;
  }
  std::list<unauthenticated_peer> callers = connect_silently(address_posted(self, 0, 1), 199);
  callers.back().shake_hands();  // all others were accepted before
  callers.front().shake_hands();
  self.post(2);
}

/// Connections come in all the time while processes begin, connect and end.
void flood(test_rank& self) {
  constexpr int rounds = 8;
  if (self.rank() == 2) {
    for (int round = 1; round <= rounds; ++round) {
      auto address = address_posted(self, 0, static_cast<std::uint64_t>(round));
      std::list<unauthenticated_peer> callers;
      for (int i = 0; i < 400; ++i) {
        callers.emplace_back(address);
        if (callers.size() > 100) callers.pop_front();
        if (i == 100) self.post(round);
      }
    }
    return;
  }
  for (int round = 1; round <= rounds; ++round) {
    ucx_process process(self);
    process.begin(static_cast<std::uint64_t>(round));
    self.wait_for(2, round);
    process.connect(static_cast<std::uint64_t>(round), {0, 1});
    process.link().send_control(1 - self.rank(), 1, greeting);
    expect(process.events.take_controls().front().body == greeting, "the friend's message");
    expect(process.events.error_count() == 0, "no peer lost");
    self.post(100 + round);
    self.wait_for(1 - self.rank(), 100 + round);
  }
}

/// A frame of the largest size, as far as it is taken.
void greedy_peer(test_rank& self) {
  if (self.rank() == 1) {
    unauthenticated_peer caller(address_posted(self, 0, 1));
    std::vector<std::byte> frame;
    troupe::messaging::begin_frame(
        {troupe::messaging::frame_kind::control, 1, 0, 1, 0, std::uint64_t{60} << 20}, 0, frame);
    frame.resize(std::size_t{60} << 20);
    caller.send(frame);
    caller.wait_until_closed();
    unauthenticated_peer slow(address_posted(self, 0, 1));
    slow.send(std::span(frame).first(troupe::messaging::reply_bytes - 1));
    slow.wait_until_closed();  // though it may still say its last byte
    self.post(1);
  } else {
    ucx_process process(self);
    process.join(1, {0});
    self.wait_for(1, 1);
    expect(process.link().statistics().bad_frames == 1, "the one that said enough counted");
  }
}

/// A process that speaks version 8 of the protocol listens at rank 1's address.
void older_version(test_rank& self) {
  auto older = troupe::messaging::control_protocol;
  older.version = 8;
  auto listener = troupe::messaging::listen_on("127.0.0.1", 0);
  ucx_process process(self);
  auto own = process.begin(1);
  auto address = troupe::messaging::decode_control_address(own.control);
  address.port = troupe::messaging::local_port(listener);
  process.link().connect(1, {{0, own}, {1, {troupe::messaging::encode_control_address(address), own.data}}});
  troupe::messaging::wait_for(listener.get(), POLLIN, std::chrono::seconds(50));
  troupe::posix::unique_fd came(::accept(listener.get(), nullptr, nullptr));
  auto said = troupe::messaging::handshake_responder(test_secret(), older).greeting();
  ::send(came.get(), said.data(), said.size(), MSG_NOSIGNAL);
  auto error = process.events.take_errors().front();
  expect(error.rank == 1 && error.cause.find("version 8") != std::string::npos,
         "the version: " + error.cause);
}

}  // namespace

TEST_CASE("replayed connections change nothing") { spawn_ranks(2, replayed_greetings); }

TEST_CASE("a tensor that is replayed over TCP is delivered once") { spawn_ranks(2, replayed_tensor); }

TEST_CASE("unauthenticated peers that use up all file descriptors do not keep a peer from connecting") {
  spawn_ranks(3, few_descriptors);
}

TEST_CASE("all members of a large world may connect at once") { spawn_ranks(2, many_members); }

TEST_CASE("peers connect while unauthenticated peers flood their ports") { spawn_ranks(3, flood); }

TEST_CASE("of an unauthenticated peer at most the bytes of a handshake are read, for a limited time") {
  spawn_ranks(2, greedy_peer);
}

TEST_CASE("a peer of another version is refused by its version") { spawn_ranks(1, older_version); }
