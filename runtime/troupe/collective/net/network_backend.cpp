#include "troupe/collective/net/network_backend.hpp"

#include <poll.h>

#include <cstring>
#include <random>

#include "troupe/collective/net/algorithms.hpp"
#include "troupe/posix/wake_event.hpp"
#include "troupe/transport/ucx_library.hpp"

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;

/// After a connection has ended: a member that aborts sends the cause before it closes.
constexpr auto loss_grace = std::chrono::milliseconds(50);
constexpr auto poll_interval = std::chrono::milliseconds(5);

/// The members whose hello has not arrived or whose connection has ended, as text; empty if there are none.
std::string unreachable_members(const ucx_exchange& own, const rendezvous& at, const std::string& interface) {
  std::string missing;
  for (int i = 0; i < at.group().size(); ++i) {
    const auto& status = own.status_of(i);
    if (i == at.member() || (status.is_connected && status.lost_cause.empty())) continue;
    missing += "rank " + to_string(at.rank_of(i)) + " from rank " + to_string(at.rank_of(at.member())) +
               " over " + interface + (status.lost_cause.empty() ? "" : " (" + status.lost_cause + ")") +
               "; ";
  }
  return missing;
}

/// Waits until all members are reachable, or half of the time has passed. Returns the unreachable ones.
std::string wait_for_hellos(ucx_exchange& own, const rendezvous& at, const std::string& interface) {
  std::string missing;
  while (true) {
    own.progress();
    missing = unreachable_members(own, at, interface);
    if (missing.empty() || clock::now() >= at.half_time()) break;
    pollfd event{own.connections().event_fd(), POLLIN, 0};
    if (own.connections().arm()) ::poll(&event, 1, static_cast<int>(poll_interval.count()));
  }
  own.connections().flush(at.half_time());
  return missing;
}

/// Exchanges addresses through the store, connects to all other members, and waits until all have received a
/// hello from all. The number of the group is the exclusive or of random numbers of its members.
void connect_members(ucx_exchange& own, rendezvous& at, const std::string& interface) {
  std::uint64_t number = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  auto address = own.address();
  std::string entry(sizeof number, '\0');
  std::memcpy(entry.data(), &number, sizeof number);
  entry.append(reinterpret_cast<const char*>(address.data()), address.size());
  auto entries = at.all_gather("network address", entry);
  std::uint64_t group_number = 0;
  for (auto& each : entries) {
    if (each.size() <= sizeof number) throw std::runtime_error("a member has no network address");
    std::memcpy(&number, each.data(), sizeof number);
    group_number ^= number;
    each.erase(0, sizeof number);
  }
  own.connect(group_number, entries);
  for (const auto& problem : at.all_gather("connections", wait_for_hellos(own, at, interface)))
    if (!problem.empty())
      throw collective_error(
          collective_failure::transport, at.group().name, 0, {},
          "group " + at.group().name + " has members that cannot reach each other: " + problem);
}

}  // namespace

network_backend::network_backend(rendezvous& at, network_context& over)
    : group_(at.group()), options_(over.options()) {
  ucx_log_suppressor failures_are_reported_as_errors;
  exchange_ = std::make_unique<ucx_exchange>(
      over.get(), group_,
      ucx_exchange::callbacks{.describe = [this] { return own_report(); },
                              .on_failure =
                                  [this](int from, const failure_report& why) {
                                    received_failure_ = why;
                                    throw failure_diagnosis(group_).aborted_by(from, why);
                                  }});
  connect_members(*exchange_, at, options_.interface);
}

network_backend::~network_backend() {
  if (!exchange_) return;
  ucx_log_suppressor lost_peers_are_expected;
  exchange_->send_to_all(net::message_kind::leaving);
  exchange_->connections().flush(clock::now() + options_.flush_timeout);
}

algorithm network_backend::run(const collective_operation& what, std::uint64_t sequence) {
  running_.push_back({&what, sequence});
  auto running = make_algorithm(what, sequence);
  co_await finished(running);
  std::erase_if(running_, [&](const running_call& each) { return each.what == &what; });
}

net::net_call network_backend::make_net_call(const collective_operation& what, std::uint64_t sequence) {
  return {*exchange_, group_, options_.sizes, what, sequence};
}

algorithm network_backend::make_algorithm(const collective_operation& what, std::uint64_t sequence) {
  auto call = make_net_call(what, sequence);
  switch (what.signature.kind) {
    case collective_kind::all_reduce:
      return net::all_reduce(std::move(call));
    case collective_kind::reduce_scatter:
      return net::reduce_scatter(std::move(call));
    case collective_kind::all_gather:
      return net::all_gather(std::move(call));
    case collective_kind::broadcast:
      return net::broadcast(std::move(call));
    case collective_kind::reduce:
      return net::reduce(std::move(call));
    case collective_kind::gather:
      return net::gather(std::move(call));
    case collective_kind::scatter:
      return net::scatter(std::move(call));
    case collective_kind::all_to_all:
      return net::all_to_all(std::move(call));
    case collective_kind::send:
      return net::send(std::move(call));
    case collective_kind::receive:
      return net::receive(std::move(call));
    case collective_kind::barrier:
      break;
  }
  return net::barrier(std::move(call));
}

void network_backend::progress() {
  if (!exchange_) return;
  ucx_log_suppressor failures_are_reported_as_errors;
  has_moved_ = exchange_->progress();
}

bool network_backend::waits_for_member(int member) const {
  return exchange_->status_of(member).num_pending > 0;
}

void network_backend::check_members() {
  if (!exchange_) return;
  for_others([&](int i, const peer_status& status) {
    bool is_lost = !status.lost_cause.empty() && clock::now() - status.lost_at > loss_grace;
    if (!(is_lost || status.has_left) || !waits_for_member(i)) return;
    drain_messages();
    if (waits_for_member(i)) throw_lost(i);
  });
}

/// Processes all messages that have arrived. On a busy machine the grace time may have passed without
/// progress, and one of them may be the failure that ended the connection, which ends this member too.
void network_backend::drain_messages() {
  constexpr int max_rounds = 1000;
  for (int round = 0; round < max_rounds && exchange_->progress(); ++round) continue;
}

void network_backend::throw_lost(int member) const {
  const auto& status = exchange_->status_of(member);
  failure_diagnosis diagnosis(group_);
  auto rank = "rank " + to_string(diagnosis.rank_of(member));
  auto how = status.has_left ? rank + " has ended its part of the group"
                             : "the connection to " + rank + " has ended (" + status.lost_cause + ')';
  auto sequence = running_.empty() ? 0 : running_.front().sequence;
  call_signature none;
  throw diagnosis.lost({running_.empty() ? none : running_.front().what->signature, sequence}, member, how,
                       activity_of(member));
}

void network_backend::announce_sleep(int engine_event) {
  engine_event_ = engine_event;
  wakeup_.announce_sleep();
}

void network_backend::cancel_sleep() {
  wakeup_.cancel_sleep();
  engine_event_ = no_event;
}

void network_backend::wake() {
  if (int event = engine_event_; event != no_event) return wake_event::set(event);
  wakeup_.wake();
}

bool network_backend::add_wake_sources(wake_sources& sources) {
  if (!exchange_) return true;
  sources.descriptors.push_back(exchange_->connections().event_fd());
  return !has_moved_ && exchange_->connections().arm();
}

void network_backend::sleep(std::chrono::microseconds at_most) {
  if (!exchange_ || has_moved_ || !exchange_->connections().arm()) return;
  wakeup_.sleep({exchange_->connections().event_fd(), -1},
                std::chrono::ceil<std::chrono::milliseconds>(at_most));
}

failure_report network_backend::own_report() const {
  const auto& calls = exchange_->calls();
  failure_report report{.sequence = calls.newest()};
  if (running_.empty()) {
    if (const auto* newest = calls.find(report.sequence))
      report.activity = text_after_call(report.sequence, *newest);
    return report;
  }
  for_others([&](int i, const peer_status&) {
    if (waits_for_member(i)) report.waits_for.push_back(i);
  });
  report.activity = text_in_call(running_.front().sequence, running_.front().what->signature);
  return report;
}

std::string network_backend::activity_of(int member) const {
  const auto& status = exchange_->status_of(member);
  if (status.report) return status.report->activity;
  if (status.sequence == 0) return "has sent no message of a call";
  return "was last seen in call " + std::to_string(status.sequence) + ", " + to_string(status.signature);
}

/// Until `is_done` holds for the status of all other members, or the deadline.
template <class Condition>
void network_backend::progress_until(clock::time_point deadline, Condition is_done) {
  while (clock::now() < deadline) {
    bool all_done = true;
    for_others([&](int, const peer_status& status) { all_done = all_done && is_done(status); });
    if (all_done) return;
    has_moved_ = exchange_->progress();
    sleep(poll_interval);
  }
}

void network_backend::request_reports() {
  ucx_log_suppressor lost_peers_are_expected;
  exchange_->clear_reports();
  exchange_->send_to_all(net::message_kind::report_request);
  progress_until(clock::now() + options_.report_timeout,
                 [](const peer_status& status) { return status.report || !status.lost_cause.empty(); });
}

std::vector<member_state> network_backend::examine(std::uint64_t) {
  if (!exchange_) return {};
  request_reports();
  member_reports reports(static_cast<std::size_t>(group_.size()));
  reports[static_cast<std::size_t>(group_.member)] = own_report();
  for_others([&](int i, const peer_status& status) { reports[static_cast<std::size_t>(i)] = status.report; });
  auto states = failure_diagnosis(group_).member_states(reports);
  for (auto& each : states)
    if (!reports[static_cast<std::size_t>(each.member)])
      each.activity = activity_of(each.member) + ", and does not answer";
  return states;
}

/// Waits until all others have aborted the group as well, or cannot be reached. A connection that closes
/// while its peer sends on it takes what the peer has not read yet along, so that the peer would be told of a
/// lost connection instead of the cause.
void network_backend::wait_for_aborts(clock::time_point deadline) {
  while (clock::now() < deadline) {
    try {
      return progress_until(deadline, [](const peer_status& status) {
        return status.has_aborted || status.has_left || !status.lost_cause.empty();
      });
    } catch (const collective_error&) {  // the failure of another member: the group has failed already
    }
  }
}

void network_backend::abort(const collective_error& why) noexcept {
  if (!exchange_) return;
  try {
    ucx_log_suppressor lost_peers_are_expected;
    // A failure that another member has reported is forwarded, since that member's connections may have ended
    // before the others have received it.
    auto report = received_failure_ ? *received_failure_ : with_failure({.sequence = why.sequence()}, why);
    auto deadline = clock::now() + options_.flush_timeout;
    exchange_->send_to_all(net::message_kind::failure, encode(report));
    exchange_->connections().flush(deadline);
    if (why.kind() == collective_failure::mismatch || why.kind() == collective_failure::timed_out)
      wait_for_aborts(deadline);
  } catch (const std::exception&) {
    // The others notice that the connections end.
  }
  exchange_.reset();
  running_.clear();
}

}  // namespace troupe
