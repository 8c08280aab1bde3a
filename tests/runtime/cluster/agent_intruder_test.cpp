#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <list>
#include <random>
#include <thread>

#include "live_agent.hpp"
#include "troupe/cluster/agent_connection.hpp"
#include "troupe/messaging/handshake.hpp"
#include "troupe/messaging/sealed_channel.hpp"
#include "troupe/messaging/tcp_socket.hpp"

using namespace troupe;
using namespace troupe::cluster;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

using bytes = std::vector<std::byte>;

posix::unique_fd connect_to(const live_agent& job) {
  int error = 0;
  auto made = messaging::try_connect("127.0.0.1", job.made->port(), 10s, error);
  REQUIRE(made);
  return made;
}

void send_all(const posix::unique_fd& to, bytes what) {
  while (!what.empty() && messaging::write_available(to.get(), what) == messaging::io_result::open)
    messaging::wait_for(to.get(), POLLOUT, 10s);
}

/// Everything the agent says until it closes the connection.
bytes read_to_end(const posix::unique_fd& from) {
  bytes all;
  while (messaging::wait_for(from.get(), POLLIN, 60s))
    if (messaging::read_available(from.get(), all, 65536) == messaging::io_result::closed) return all;
  throw std::runtime_error("the agent did not close the connection");
}

bytes read_exactly(const posix::unique_fd& from, std::size_t size) {
  bytes all;
  while (all.size() < size && messaging::wait_for(from.get(), POLLIN, 60s))
    messaging::read_available(from.get(), all, size - all.size());
  return all;
}

void check_goes_on(const live_agent& job) {
  test_member member(job.client(0));
  member.join();
  CHECK(member.views.next().members.size() == 1);
}

bytes random_bytes(std::mt19937& random, std::size_t size) {
  bytes made(size);
  for (auto& byte : made) byte = std::byte(random());
  return made;
}

/// A client that knows the secret, up to the point where frames begin.
struct authenticated_line {
  posix::unique_fd socket;
  messaging::sealed_channel channel;
};

authenticated_line shake_hands(const live_agent& job) {
  auto socket = connect_to(job);
  auto greeting = read_exactly(socket, messaging::greeting_bytes);
  auto mine = messaging::make_nonce();
  auto proofs = answer_greeting(std::span<const std::byte>(greeting).first<messaging::greeting_bytes>(),
                                job.options.secret, messaging::agent_protocol, mine);
  auto reply = reply_of(proofs, mine);
  send_all(socket, {reply.begin(), reply.end()});
  CHECK(read_exactly(socket, messaging::verdict_bytes).at(0) == messaging::verdict_accepted);
  return {std::move(socket), messaging::sealed_channel(messaging::handshake_role::initiator, proofs)};
}

}  // namespace

TEST_CASE("garbage of every length closes its sender's connection and has no other effect") {
  live_agent job(job_of(1));
  std::mt19937 random(20);
  for (int i = 0; i < 200; ++i) {
    auto peer = connect_to(job);
    auto size = random() % 300;
    send_all(peer, random_bytes(random, size));
    if (size < messaging::reply_bytes) continue;  // it waits for more
    auto said = read_to_end(peer);
    // Unless the rest of the garbage cut the answer off, it is a greeting and a refusal.
    if (said.size() == messaging::greeting_bytes + messaging::verdict_bytes)
      CHECK(said.at(messaging::greeting_bytes) == messaging::verdict_refused);
  }
  check_goes_on(job);
}

TEST_CASE("silent unauthenticated peers do not keep members from joining") {
  live_agent job(job_of(1));
  std::list<posix::unique_fd> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(connect_to(job));
  check_goes_on(job);
  // The first ones had to make room.
  CHECK(read_to_end(idle.front()).size() == messaging::greeting_bytes);
}

TEST_CASE("a recorded proof is refused on another connection") {
  live_agent job(job_of(1));
  auto first = connect_to(job);
  auto greeting = read_exactly(first, messaging::greeting_bytes);
  auto mine = messaging::make_nonce();
  auto reply =
      reply_of(answer_greeting(std::span<const std::byte>(greeting).first<messaging::greeting_bytes>(),
                               job.options.secret, messaging::agent_protocol, mine),
               mine);
  auto second = connect_to(job);
  send_all(second, {reply.begin(), reply.end()});
  CHECK(read_to_end(second).at(messaging::greeting_bytes) == messaging::verdict_refused);
}

TEST_CASE("bad frames and messages after a valid handshake only close the connection") {
  live_agent job(job_of(1));
  std::mt19937 random(4);
  for (int i = 0; i < 60; ++i) {
    auto line = shake_hands(job);
    if (i % 3 == 0) {
      auto huge = random_bytes(random, 64);
      huge[3] = std::byte{0xff};
      send_all(line.socket, huge);
    } else {
      bytes out;
      line.channel.seal(random_bytes(random, random() % 100), out);
      if (i % 3 == 1) out[10] ^= std::byte{1};
      send_all(line.socket, out);
    }
    read_to_end(line.socket);
  }
  check_goes_on(job);
}

TEST_CASE("a member whose line to the agent brings other bytes says so, and not that the agent is gone") {
  auto secret = messaging::make_job_secret();
  auto listener = messaging::listen_on("127.0.0.1", 0);
  std::thread forger([&] {
    messaging::wait_for(listener.get(), POLLIN, 60s);
    agent_connection line(
        posix::unique_fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)), secret,
        std::chrono::steady_clock::now());
    bool has_answered = false;
    while (!line.closed() && messaging::wait_for(line.fd(), POLLIN, 60s))
      if (!line.read().empty() && !std::exchange(has_answered, true)) {  // its hello
        line.send(agent_wire::answer{});
        bytes changed(64, std::byte(255));
        messaging::write_available(line.fd(), changed);
      }
  });
  {
    agent_client_options options;
    options.port = messaging::local_port(listener);
    options.secret = secret;
    test_member member(options);
    CHECK_THAT(member.ends.next(),
               Catch::Matchers::ContainsSubstring("bytes that are no message of this job"));
  }
  forger.join();
}
