#include "troupe/cluster/agent_dial.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "troupe/cluster/agent_messages.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/messaging/tcp_socket.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::cluster {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using bytes = std::vector<std::byte>;

/// One attempt's connection. The functions return false when the peer goes away or the deadline passes.
struct attempt {
  const agent_client_options& options;
  clock::time_point deadline;
  posix::unique_fd socket;
  bytes received;
  std::string problem;
  std::string waits_for_name;  ///< what to tell about it; empty: the name has an address

  std::chrono::milliseconds time_left() const {
    return std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now()));
  }

  bool reach() {
    int error = 0;
    try {
      socket = messaging::try_connect(options.address, options.port,
                                      std::min<std::chrono::milliseconds>(time_left(), 2s), error);
    } catch (const messaging::unknown_address& unknown) {
      problem = unknown.what();
      waits_for_name = still_unknown(unknown);
      return false;
    } catch (const system_failure& failure) {  // no free descriptor: the loop tries again
      error = failure.error_number();
    }
    if (!socket) problem = std::strerror(error);
    return static_cast<bool>(socket);
  }

  bool send(bytes out) {
    while (!out.empty()) {
      if (messaging::write_available(socket.get(), out) == messaging::io_result::closed) return broken();
      if (!out.empty() && !messaging::wait_for(socket.get(), POLLOUT, time_left())) return silent();
    }
    return true;
  }

  bool receive(std::size_t size) {
    while (received.size() < size)
      if (!receive_some(size - received.size())) return false;
    return true;
  }
  bool receive_some(std::size_t limit_bytes) {
    auto before = received.size();
    if (!messaging::wait_for(socket.get(), POLLIN, time_left())) return silent();
    return messaging::read_available(socket.get(), received, limit_bytes) == messaging::io_result::open ||
           received.size() > before || broken();
  }

  bool broken() {
    problem = "the connection was closed";
    return false;
  }
  bool silent() {
    problem = "no answer";
    return false;
  }
};

[[noreturn]] void refuse(const agent_client_options& options, const std::string& why) {
  throw bad_input("rank " + std::to_string(options.rank) + " cannot join the job at " +
                  messaging::endpoint_name(options.address, options.port) + ": " + why);
}

std::optional<messaging::sealed_channel> shake_hands(attempt& current) {
  if (!current.receive(messaging::greeting_bytes)) return {};
  auto greeting = std::span<const std::byte>(current.received).first<messaging::greeting_bytes>();
  if (auto fault = greeting_fault(greeting, messaging::agent_protocol))
    refuse(current.options,
           *fault + ". It is no troupe agent of this version: check MASTER_ADDR and MASTER_PORT");
  auto mine = messaging::make_nonce();
  auto proofs = answer_greeting(greeting, current.options.secret, messaging::agent_protocol, mine);
  current.received.clear();
  auto reply = reply_of(proofs, mine);
  if (!current.send({reply.begin(), reply.end()}) || !current.receive(messaging::verdict_bytes)) return {};
  if (current.received[0] != messaging::verdict_accepted)
    refuse(current.options,
           "the agent refused this process's job secret. All processes of a job need the same "
           "TROUPE_JOB_SECRET; is this the port of another job?");
  if (!proofs.verify(messaging::handshake_role::responder,
                     std::span(current.received).subspan<1, sizeof(messaging::handshake_proof)>()))
    refuse(current.options,
           "the agent does not know the job's secret, so it is not this job's. Check MASTER_PORT");
  current.received.clear();
  return messaging::sealed_channel(messaging::handshake_role::initiator, proofs);
}

bool say_hello(attempt& current, messaging::sealed_channel& channel) {
  bytes out;
  agent_wire::client_message hello =
      agent_wire::hello{current.options.rank, current.options.world_size, current.options.incarnation};
  channel.seal(wire::encode(hello), out);
  if (!current.send(std::move(out))) return false;
  while (true) {
    if (auto body = channel.open(current.received)) {
      auto message = wire::decode<agent_wire::agent_message>(*body);
      auto* answer = std::get_if<agent_wire::answer>(&message);
      if (!answer) refuse(current.options, "expected the agent's answer to hello, got another message");
      if (!answer->refusal.empty()) refuse(current.options, answer->refusal);
      return true;
    }
    if (!current.receive_some(1 << 16)) return false;
  }
}

std::optional<authenticated_connection> dial_once(attempt& current) {
  if (!current.reach()) return {};
  auto channel = shake_hands(current);
  if (!channel || !say_hello(current, *channel)) return {};
  return authenticated_connection{std::move(current.socket), *channel, std::move(current.received)};
}

}  // namespace

authenticated_connection dial_agent(const agent_client_options& options) {
  auto deadline = clock::now() + options.connect_timeout;
  bool has_told = !options.on_waiting;
  while (true) {
    attempt next{options, deadline, {}, {}, {}, {}};
    if (auto line = dial_once(next)) return std::move(*line);
    bool is_unknown = !next.waits_for_name.empty();
    if (is_unknown && !std::exchange(has_told, true)) options.on_waiting(next.waits_for_name);
    auto pause = is_unknown ? messaging::between_lookups : 20ms;
    if (clock::now() + pause >= deadline)
      throw bad_input("rank " + std::to_string(options.rank) + " cannot reach the job's agent at " +
                      messaging::endpoint_name(options.address, options.port) + " within " +
                      std::to_string(options.connect_timeout.count()) + " ms (" + next.problem +
                      "). Is the launcher, or rank 0, running, and are MASTER_ADDR and MASTER_PORT right?");
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace troupe::cluster
