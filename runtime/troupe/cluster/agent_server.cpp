#include "troupe/cluster/agent_server.hpp"

#include <algorithm>
#include <utility>

namespace troupe::cluster {
namespace {

using namespace std::chrono_literals;

constexpr auto linger_for_writes = 500ms;

membership_rules rules_of(const agent_options& options) {
  membership_rules rules;
  rules.world_size = options.world_size;
  rules.join_timeout = options.join_timeout;
  rules.suspect_after = options.suspect_after;
  rules.replaces_lost_members = options.replaces_lost_members;
  return rules;
}

}  // namespace

agent_server::agent_server(const agent_options& options, agent_callbacks callbacks)
    : options_(options),
      callbacks_(std::move(callbacks)),
      state_(rules_of(options), clock::now()),
      connections_(options_, callbacks_.on_warning) {
  messaging::handshake check_secret(options_.secret, messaging::agent_protocol, {}, {});
  thread_ = std::thread([this] { run(); });
}

agent_server::~agent_server() {
  commands_.post([this] { stop_asked_ = clock::now(); });
  thread_.join();
}

// --- the owner's side: commands run on the agent's thread

loss_outcome agent_server::process_lost(int rank, const std::string& cause, clock::time_point detected,
                                        std::optional<clock::time_point> died) {
  std::promise<loss_outcome> outcome;
  commands_.post([&] {
    drain(rank);
    bool had_left = state_.has_left(rank);
    bool was_present = state_.is_present(rank);
    perform(state_.process_lost(rank, cause, detected, died, clock::now()));
    drop_connections_of(rank);
    outcome.set_value(had_left ? loss_outcome::had_left
                      : state_.is_done()
                          ? (was_present ? loss_outcome::not_needed : loss_outcome::came_too_late)
                      : state_.job_ended() ? loss_outcome::job_failed
                                           : loss_outcome::await_replacement);
  });
  return outcome.get_future().get();
}

void agent_server::process_exited(int rank) {
  commands_.post([this, rank] {
    drain(rank);
    perform(state_.process_exited(rank, clock::now()));
  });
}

void agent_server::fail_job(const std::string& cause) {
  commands_.post([this, cause] { perform(state_.failed(cause)); });
}

std::vector<int> agent_server::stop_job(int signal) {
  std::promise<std::vector<int>> told;
  commands_.post([&] {
    std::vector<int> ranks;
    for (int rank = 0; rank < options_.world_size; ++rank)
      if (state_.hears_of_stop(rank)) ranks.push_back(rank);
    perform(state_.stop(signal));
    told.set_value(std::move(ranks));
  });
  return told.get_future().get();
}

reported_failure agent_server::failure_of(int rank, std::chrono::milliseconds at_most) {
  failure_question question{rank, clock::now() + at_most, {}};
  auto answer = question.answer.get_future();
  commands_.post([&] {
    drain(rank);
    questions_.push_back(std::move(question));
  });
  return answer.get();
}

// --- the loop

void agent_server::run() {
  while (!may_stop()) {
    connections_.poll(commands_.fd(), [this](agent_connection& from) { serve(from); });
    commands_.run_all();
    warn_of_gap();
    perform(state_.tick(clock::now()));
    send_heartbeats();
    warn_of_descriptors();
    drop_ended_connections();
    answer_failures();
  }
}

/// True once the owner has requested it and all members have left and all output is written, or the time
/// limits for these have passed.
bool agent_server::may_stop() {
  if (!stop_asked_) return false;
  auto now = clock::now();
  bool unsent = std::ranges::any_of(connections_, &agent_connection::wants_write);
  bool needed = !state_.job_ended() && std::ranges::any_of(connections_, [this](const auto& connection) {
    return is_member(connection);
  });
  return !(unsent && now < *stop_asked_ + linger_for_writes) &&
         !(needed && now < *stop_asked_ + options_.linger);
}

void agent_server::serve(agent_connection& from) {
  for (const auto& message : from.read()) on_message(from, message);
}

void agent_server::drop_ended_connections() {
  for (const auto& ended : connections_.take_ended())
    if (is_member(ended)) perform(state_.connection_lost(ended.peer->rank, clock::now()));
}

/// Members that get no heartbeat for agent_timeout treat the agent as lost.
void agent_server::send_heartbeats() {
  auto now = clock::now();
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + options_.heartbeat;
  for (auto& connection : connections_)
    if (connection.peer) connection.send(agent_wire::agent_heartbeat{});
}

void agent_server::warn_of_gap() {
  auto now = clock::now();
  auto text = text_of_gap(now - std::exchange(last_round_, now));
  if (!text.empty() && callbacks_.on_warning) callbacks_.on_warning(text);
}

/// Warns once each time that descriptors run out. Pending connections are accepted later.
void agent_server::warn_of_descriptors() {
  bool out = connections_.out_of_descriptors();
  if (out && !warned_of_descriptors_ && callbacks_.on_warning)
    callbacks_.on_warning(
        "no file descriptors are left for processes that want to join; they wait until there are some again "
        "(see `ulimit -n`)");
  warned_of_descriptors_ = out;
}

void agent_server::answer_failures() {
  std::erase_if(questions_, [this](failure_question& asked) {
    auto said = failures_.find(asked.rank);
    bool is_known = said != failures_.end();
    if (!is_known && is_connected(asked.rank) && clock::now() < asked.until) return false;
    asked.answer.set_value(is_known ? said->second : reported_failure());
    return true;
  });
}

bool agent_server::is_connected(int rank) {
  return std::ranges::any_of(connections_, [rank](const agent_connection& connection) {
    return connection.peer && connection.peer->rank == rank && !connection.closed();
  });
}

/// Reads what `rank` sent before it ended: the last message may be leave_job or member_failure.
void agent_server::drain(int rank) {
  for (auto& connection : connections_)
    if (connection.peer && connection.peer->rank == rank) serve(connection);
}

void agent_server::drop_connections_of(int rank) {
  connections_.drop(rank);
  keys_.forget_all(rank);
  failures_.erase(rank);
}

// --- messages

void agent_server::on_message(agent_connection& from, const agent_wire::client_message& message) {
  using namespace agent_wire;
  if (!from.listens()) return;
  if (!from.peer) {
    if (auto* first = std::get_if<agent_wire::hello>(&message)) return on_hello(from, *first);
    return from.close();
  }
  if (auto* join = std::get_if<agent_wire::join_job>(&message)) return on_join(from, *join);
  if (auto* failure = std::get_if<agent_wire::job_failure>(&message))
    return perform(state_.failed(
        "rank " + std::to_string(from.peer->rank) + " ended the job: " + failure->cause, failure->kind));
  if (!is_member(from)) return;
  state_.heard(from.peer->rank, clock::now());
  if (std::holds_alternative<agent_wire::leave_job>(message)) return on_leave(from);
  if (auto* own = std::get_if<agent_wire::member_failure>(&message)) {
    state_.failing(from.peer->rank, clock::now());
    if (!own->message.empty()) failures_[from.peer->rank] = {own->message, own->kind};
    return;
  }
  if (on_store_message(from, message)) return;
  perform(on_member_message(from.peer->rank, message));
}

void agent_server::on_hello(agent_connection& from, const agent_wire::hello& message) {
  if (job_end_) return tell_end(from);
  auto reason = state_.refusal(message.rank, message.incarnation).value_or("");
  if (message.world_size != options_.world_size)
    reason = "it was started for a job of " + std::to_string(message.world_size) +
             " processes, this one has " + std::to_string(options_.world_size);
  else if (reason.empty() && std::ranges::any_of(connections_, [&](const agent_connection& other) {
             return other.peer && !other.closed() && other.peer->rank == message.rank;
           }))
    reason = "rank " + std::to_string(message.rank) + " is taken by another process that is joining";
  from.send(agent_wire::answer{reason});
  if (reason.empty())
    from.peer = message;
  else
    from.finish();
}

/// A process that comes after the end of the job ends as its members did. It is not refused, which would say
/// that its input is bad.
void agent_server::tell_end(agent_connection& to) {
  to.send(agent_wire::answer{});
  to.send(*job_end_);
  to.finish();
}

void agent_server::on_join(agent_connection& from, const agent_wire::join_job& message) {
  const auto& self = message.self;
  auto reason = state_.refusal(self.rank, self.incarnation).value_or("");
  if (self.rank != from.peer->rank || self.incarnation != from.peer->incarnation)
    reason = "its join names another process than its hello";
  if (reason.empty()) return perform(state_.joined(self, clock::now()));
  from.send(agent_wire::job_end{reason});
  from.finish();
}

/// The end of the connection tells the member that its leave has arrived.
void agent_server::on_leave(agent_connection& from) {
  perform(state_.left(from.peer->rank, clock::now()));
  from.finish();
}

membership_outputs agent_server::on_member_message(int rank, const agent_wire::client_message& message) {
  using namespace agent_wire;
  auto now = clock::now();
  if (auto* m = std::get_if<agent_wire::computing_on>(&message))
    return state_.still_computing(rank, m->generation, now);
  if (auto* m = std::get_if<agent_wire::quiesced_for>(&message))
    return state_.quiesced(rank, m->generation, m->address, now);
  if (auto* m = std::get_if<agent_wire::generation_request>(&message))
    return state_.generation_requested(m->current, "rank " + std::to_string(rank) + ": " + m->cause, now);
  if (auto* m = std::get_if<agent_wire::suspicion>(&message)) {
    // A process that is ending loses its connections and would suspect all its peers.
    if (state_.is_failing(rank)) return {};
    return state_.suspected(m->rank, m->incarnation, m->cause, now);
  }
  if (auto* m = std::get_if<agent_wire::stop_request>(&message))
    return m->scope == stop_scope::job ? state_.stop(m->signal) : state_.stop_asked(rank, m->signal);
  if (auto* m = std::get_if<agent_wire::stop_done>(&message)) return state_.stopped(m->summary);
  if (auto* m = std::get_if<agent_wire::phase_report>(&message))
    return state_.phase_reached(m->generation, m->phase, now);
  if (auto* m = std::get_if<agent_wire::progress_report>(&message); m && callbacks_.on_progress)
    callbacks_.on_progress(m->progress);
  return {};
}

// --- the outputs of the state machine

void agent_server::perform(const membership_outputs& outputs) {
  for (const auto& output : outputs) std::visit([this](const auto& each) { perform(each); }, output);
}

bool agent_server::is_member(const agent_connection& connection) const {
  return connection.peer && state_.is_member(connection.peer->rank, connection.peer->incarnation);
}

void agent_server::send_to_members(const agent_wire::agent_message& message) {
  for (auto& connection : connections_)
    if (is_member(connection)) connection.send(message);
}

void agent_server::perform(const send_fence& fence) {
  agent_wire::fence message{fence.generation, {}};
  for (const auto& loss : fence.losses) message.losses.push_back({loss});
  for (auto& connection : connections_)
    if (is_member(connection) && std::ranges::count(fence.to, connection.peer->rank))
      connection.send(message);
}

void agent_server::perform(const send_view& view) {
  // The owner is told of the view before members act in it.
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

void agent_server::perform(const send_done&) { send_to_members(agent_wire::job_done{}); }

void agent_server::perform(const send_stop& stop) {
  if (callbacks_.on_stop) callbacks_.on_stop(stop.signal);
  send_to_members(agent_wire::stop_requested{stop.signal});
}

void agent_server::perform(const end_job& end) {
  // The owner is told the cause before processes end because of it.
  if (end.signal && callbacks_.on_job_stopped) callbacks_.on_job_stopped(end.signal, end.cause);
  if (!end.signal && callbacks_.on_job_failed) callbacks_.on_job_failed(end.cause, end.kind);
  job_end_ = agent_wire::job_end{end.cause, end.kind};
  if (end.signal) job_end_ = agent_wire::job_stopped{end.signal, end.cause};
  for (auto& connection : connections_)
    if (connection.peer) connection.send(*job_end_);
}

}  // namespace troupe::cluster
