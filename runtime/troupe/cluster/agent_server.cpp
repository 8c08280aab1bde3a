#include "troupe/cluster/agent_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <future>

#include "troupe/cluster/tcp_socket.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr auto handshake_deadline = 5s;

constexpr auto linger_for_writes = 500ms;
constexpr std::size_t max_strangers = 64;

membership_rules rules_of(const agent_options& options) {
  return {options.world_size, options.join_timeout, options.suspect_after, options.survives_losses};
}

}  // namespace

agent_server::agent_server(const agent_options& options, agent_callbacks callbacks)
    : options_(options),
      callbacks_(std::move(callbacks)),
      listener_(listen_on(options.address, options.port)),
      port_(local_port(listener_)),
      state_(rules_of(options), clock::now()) {
  handshake check_secret(options_.secret, {}, {});
  thread_ = std::thread([this] { run(); });
}

agent_server::~agent_server() {
  stopping_ = true;
  wake_.set();
  thread_.join();
}

// --- the owner's side: commands run on the agent's thread

void agent_server::post(std::function<void()> command) {
  {
    std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wake_.set();
}

loss_outcome agent_server::process_lost(int rank, const std::string& cause, clock::time_point detected,
                                        std::optional<clock::time_point> died) {
  std::promise<loss_outcome> outcome;
  post([&] {
    drain(rank);
    bool had_left = state_.has_left(rank);
    perform(state_.process_lost(rank, cause, detected, died, clock::now()));
    drop_connections_of(rank);
    outcome.set_value(had_left             ? loss_outcome::had_left
                      : state_.is_over()   ? loss_outcome::not_needed
                      : state_.job_ended() ? loss_outcome::job_failed
                                           : loss_outcome::await_replacement);
  });
  return outcome.get_future().get();
}

void agent_server::process_exited(int rank) {
  post([this, rank] {
    drain(rank);
    perform(state_.process_exited(rank, clock::now()));
  });
}

void agent_server::fail_job(const std::string& cause) {
  post([this, cause] { perform(state_.failed(cause)); });
}

void agent_server::run_commands() {
  std::vector<std::function<void()>> commands;
  {
    std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (auto& command : commands) command();
}

// --- the loop

void agent_server::run() {
  while (!may_stop()) {
    poll_once();
    run_commands();
    perform(state_.tick(clock::now()));
    sweep();
  }
}

/// Once the owner wants to stop: when nobody needs the agent any more, or has needed it for too long.
bool agent_server::may_stop() {
  if (!stopping_) return false;
  auto now = clock::now();
  if (stop_asked_ == clock::time_point()) stop_asked_ = now;
  bool unsent = std::ranges::any_of(connections_, &agent_connection::wants_write);
  bool needed = !state_.job_ended() && std::ranges::any_of(connections_, [this](const auto& connection) {
    return is_member(connection);
  });
  return !(unsent && now < stop_asked_ + linger_for_writes) &&
         !(needed && now < stop_asked_ + options_.linger);
}

void agent_server::poll_once() {
  std::vector<pollfd> polled = {{wake_.fd(), POLLIN, 0}};
  for (const auto& connection : connections_) {
    int events = (connection.wants_read() ? POLLIN : 0) | (connection.wants_write() ? POLLOUT : 0);
    polled.push_back({connection.fd(), static_cast<short>(events), 0});
  }
  if (!accept_paused_) polled.push_back({listener_.get(), POLLIN, 0});
  accept_paused_ = false;
  auto tick = std::clamp<std::chrono::milliseconds>(options_.suspect_after / 8, 1ms, 50ms);
  if (::poll(polled.data(), polled.size(), static_cast<int>(tick.count())) <= 0) return;
  if (polled[0].revents) wake_.clear();
  std::size_t i = 1;
  for (auto& connection : connections_) {
    auto happened = polled[i++].revents;
    if (happened & POLLOUT) connection.write();
    if (!(happened & ~POLLOUT)) continue;
    if (connection.wants_read())
      serve(connection);
    else
      connection.close();
  }
  if (i < polled.size() && polled[i].revents) accept_all();
}

void agent_server::accept_all() {
  while (true) {
    unique_fd made(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!made) {
      // Out of descriptors the listener would stay readable: look again after a tick.
      accept_paused_ = errno != EAGAIN;
      return;
    }
    int on = 1;
    ::setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    make_room_for_stranger();
    connections_.emplace_back(std::move(made), options_.secret, clock::now());
  }
}

/// The oldest of too many unauthenticated connections goes. As many as the whole job may shake hands at once.
void agent_server::make_room_for_stranger() {
  auto is_stranger = [](const agent_connection& c) { return !c.authenticated() && !c.closed(); };
  auto count = static_cast<std::size_t>(std::ranges::count_if(connections_, is_stranger));
  if (count < max_strangers + static_cast<std::size_t>(options_.world_size)) return;
  std::ranges::find_if(connections_, is_stranger)->close();
}

void agent_server::serve(agent_connection& from) {
  for (const auto& message : from.read()) on_message(from, message);
}

/// Removes closed connections and strangers that take too long.
void agent_server::sweep() {
  auto now = clock::now();
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (!it->speaker && now - it->opened() > handshake_deadline) it->close();
    if (!it->closed()) {
      ++it;
      continue;
    }
    auto speaker = it->speaker.value_or(agent_wire::hello{});
    bool lost = is_member(*it);
    it = connections_.erase(it);
    if (lost) perform(state_.connection_lost(speaker.rank, now));
  }
}

/// Reads what `rank` sent before it ended: its last message may be that it left.
void agent_server::drain(int rank) {
  for (auto& connection : connections_)
    if (connection.speaker && connection.speaker->rank == rank) serve(connection);
}

void agent_server::drop_connections_of(int rank) {
  connections_.remove_if([&](const agent_connection& c) { return c.speaker && c.speaker->rank == rank; });
  keys_.forget_all(rank);
}

// --- messages

void agent_server::on_message(agent_connection& from, const agent_wire::client_message& message) {
  using namespace agent_wire;
  if (!from.listens()) return;
  if (!from.speaker) {
    if (auto* first = std::get_if<hello>(&message)) return on_hello(from, *first);
    return from.close();
  }
  if (auto* join = std::get_if<join_job>(&message)) return on_join(from, *join);
  if (auto* failure = std::get_if<job_failure>(&message))
    return perform(
        state_.failed("rank " + std::to_string(from.speaker->rank) + " ended the job: " + failure->cause));
  if (!is_member(from)) return;
  state_.heard(from.speaker->rank, clock::now());
  if (std::holds_alternative<leave_job>(message)) return on_leave(from);
  if (on_store_message(from, message)) return;
  perform(on_member_message(from.speaker->rank, message));
}

void agent_server::on_hello(agent_connection& from, const agent_wire::hello& message) {
  auto reason = state_.refusal(message.rank, message.incarnation).value_or("");
  if (message.world_size != options_.world_size)
    reason = "it was started for a job of " + std::to_string(message.world_size) +
             " processes, this one has " + std::to_string(options_.world_size);
  else if (reason.empty() && std::ranges::any_of(connections_, [&](const agent_connection& other) {
             return other.speaker && !other.closed() && other.speaker->rank == message.rank;
           }))
    reason = "rank " + std::to_string(message.rank) + " is taken by another process that is joining";
  if (!job_end_cause_.empty()) reason = "the job has ended: " + job_end_cause_;
  from.send(agent_wire::answer{reason});
  if (reason.empty())
    from.speaker = message;
  else
    from.finish();
}

void agent_server::on_join(agent_connection& from, const agent_wire::join_job& message) {
  const auto& self = message.self;
  auto reason = state_.refusal(self.rank, self.incarnation).value_or("");
  if (self.rank != from.speaker->rank || self.incarnation != from.speaker->incarnation)
    reason = "it joins as another process than it said hello for";
  if (reason.empty()) return perform(state_.joined(self, clock::now()));
  from.send(agent_wire::job_end{reason});
  from.finish();
}

/// The end of the connection tells the member that its leave has arrived.
void agent_server::on_leave(agent_connection& from) {
  perform(state_.left(from.speaker->rank, clock::now()));
  from.finish();
}

membership_outputs agent_server::on_member_message(int rank, const agent_wire::client_message& message) {
  using namespace agent_wire;
  auto now = clock::now();
  if (auto* m = std::get_if<quiesced_for>(&message))
    return state_.quiesced(rank, m->generation, m->address, now);
  if (auto* m = std::get_if<generation_request>(&message))
    return state_.generation_requested(m->current, "rank " + std::to_string(rank) + ": " + m->cause, now);
  if (auto* m = std::get_if<suspicion>(&message))
    return state_.suspected(m->rank, m->incarnation, m->cause, now);
  if (auto* m = std::get_if<phase_report>(&message))
    return state_.phase_reached(m->generation, m->phase, now);
  if (auto* m = std::get_if<progress_report>(&message); m && callbacks_.on_progress)
    callbacks_.on_progress(m->progress);
  return {};
}

// --- what the state machine wants done

void agent_server::perform(const membership_outputs& outputs) {
  for (const auto& output : outputs) std::visit([this](const auto& what) { perform(what); }, output);
}

bool agent_server::is_member(const agent_connection& connection) const {
  return connection.speaker && state_.is_member(connection.speaker->rank, connection.speaker->incarnation);
}

void agent_server::send_to_members(const agent_wire::agent_message& message) {
  for (auto& connection : connections_)
    if (is_member(connection)) connection.send(message);
}

void agent_server::perform(const send_fence& fence) {
  agent_wire::fence message{fence.generation, {}};
  for (const auto& loss : fence.losses) message.losses.push_back({loss});
  for (auto& connection : connections_)
    if (is_member(connection) && std::ranges::count(fence.to, connection.speaker->rank))
      connection.send(message);
}

void agent_server::perform(const send_view& view) {
  // The owner knows of the view before it sees what members do in it.
  if (callbacks_.on_view) callbacks_.on_view(view.view);
  agent_wire::view message{view.view.generation, {}};
  for (const auto& member : view.view.members) message.members.push_back({member});
  send_to_members(message);
}

void agent_server::perform(const kill_process& kill) {
  if (callbacks_.kill) callbacks_.kill(kill.rank, kill.incarnation, kill.cause);
}

void agent_server::perform(const send_recovered& recovered) {
  if (callbacks_.on_recovered) callbacks_.on_recovered(recovered.report);
  send_to_members(
      agent_wire::recovered{recovered.report.generation, {recovered.report.loss}, recovered.report});
}

void agent_server::perform(const send_over&) { send_to_members(agent_wire::job_over{}); }

void agent_server::perform(const end_job& end) {
  job_end_cause_ = end.cause;
  // The owner knows the cause before it sees processes end of it.
  if (callbacks_.on_job_failed) callbacks_.on_job_failed(end.cause);
  for (auto& connection : connections_)
    if (connection.speaker) connection.send(agent_wire::job_end{end.cause});
}

}  // namespace troupe
