#include "troupe/collective/net/network_backend.hpp"

#include <utility>

#include "troupe/collective/diagnostics/failure_diagnosis.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/collective/net/algorithms.hpp"
#include "troupe/collective/net/network_formation.hpp"
#include "troupe/posix/wake_event.hpp"
#include "troupe/ucx/ucx_library.hpp"

namespace troupe::collective {
namespace {

using clock = std::chrono::steady_clock;

/// After a connection has ended: a member that aborts sends the cause before it closes.
constexpr auto loss_grace = std::chrono::milliseconds(50);
constexpr auto poll_interval = std::chrono::milliseconds(5);

}  // namespace

network_backend::network_backend(rendezvous& point, ucx_group_resources& resources)
    : group_(point.group()), options_(resources.network.options()) {
  ucx::ucx_log_suppressor failures_are_reported_as_errors;
  network_formation forming(point, resources);
  auto connections = forming.connect();
  try {
    exchange_ =
        std::make_unique<ucx_exchange>(forming.fabric(), group_, connections,
                                       ucx_exchange::callbacks{.describe = [this] { return own_report(); },
                                                               .wake = [this] { network_backend::wake(); }});
  } catch (const std::exception& problem) {  // the others wait for this member
    point.fail("rank " + to_string(point.rank_of(point.member())) + ": " + problem.what());
  }
  try {
    forming.wait_for_all(*exchange_);
  } catch (const collective_error& error) {
    exchange_->abort(with_failure({}, error));
    throw;
  }
}

network_backend::~network_backend() {
  ucx::ucx_log_suppressor lost_peers_are_expected;
  exchange_.reset();
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
  ucx::ucx_log_suppressor failures_are_reported_as_errors;
  has_moved_ = exchange_->progress();
}

bool network_backend::waits_for_member(int member) const { return exchange_->num_pending(member) > 0; }

// On a busy machine the grace time may have passed without progress, and a message that has arrived may be
// the failure that ended the connection, which ends this member too.
void network_backend::check_members() {
  if (!exchange_ || !exchange_->has_losses()) return;
  for_others([&](int i, const peer_status& status) {
    bool is_lost = !status.lost_cause.empty() && clock::now() - status.lost_at > loss_grace;
    if (!(is_lost || status.has_left) || !waits_for_member(i)) return;
    exchange_->drain();
    if (waits_for_member(i)) throw_lost(i);
  });
}

void network_backend::throw_lost(int member) const {
  auto status = exchange_->status_of(member);
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
  if (int event = engine_event_; event != no_event) return posix::wake_event::set(event);
  wakeup_.wake();
}

bool network_backend::add_wake_sources(wake_sources& sources) {
  if (!exchange_) return true;
  sources.descriptors.push_back(exchange_->event_fd());
  return !has_moved_ && exchange_->arm();
}

void network_backend::sleep(std::chrono::microseconds at_most) {
  if (!exchange_ || has_moved_ || !exchange_->arm()) return;
  network_fabric::sleeper leaves_no_work_to_engine(exchange_->fabric());
  wakeup_.sleep({exchange_->event_fd(), -1}, std::chrono::ceil<std::chrono::milliseconds>(at_most));
}

failure_report network_backend::own_report() const {
  auto [sequence, signature] = exchange_->newest_call();
  failure_report report{.sequence = sequence};
  if (running_.empty()) {
    if (signature) report.activity = text_after_call(sequence, *signature);
    return report;
  }
  for_others([&](int i, const peer_status&) {
    if (waits_for_member(i)) report.waits_for.push_back(i);
  });
  report.activity = text_in_call(running_.front().sequence, running_.front().what->signature);
  return report;
}

std::string network_backend::activity_of(int member) const {
  auto status = exchange_->status_of(member);
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
  ucx::ucx_log_suppressor lost_peers_are_expected;
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

void network_backend::abort(const collective_error& why) noexcept {
  if (!exchange_) return;
  try {
    ucx::ucx_log_suppressor lost_peers_are_expected;
    // A failure that another member has reported is forwarded, since that member may have ended before the
    // others have received it.
    auto received = exchange_->received_failure();
    exchange_->abort(received ? *received : with_failure({.sequence = why.sequence()}, why));
  } catch (const std::exception&) {
    // The others notice that the connections end.
  }
  exchange_.reset();
  running_.clear();
}

}  // namespace troupe::collective
