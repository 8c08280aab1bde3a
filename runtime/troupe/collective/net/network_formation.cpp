#include "troupe/collective/net/network_formation.hpp"

#include <poll.h>

#include <utility>

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/group/ucx_group.hpp"

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;

/// How often a member that waits for the others looks into the store.
constexpr auto look_interval = std::chrono::milliseconds(100);
constexpr auto poll_interval = std::chrono::milliseconds(5);

}  // namespace

// Each generation has connections of its own, and so addresses.
network_formation::network_formation(rendezvous& at, ucx_group_resources& resources)
    : at_(at),
      processes_(resources.processes),
      fabric_(resources.network.fabric(at.group().generation)),
      num_ends_(fabric_->num_ends()),
      interface_(resources.network.options().interface),
      address_name_("network address of generation " + std::to_string(at.group().generation)) {}

network_fabric::process network_formation::process_of(int member) const {
  return {at_.rank_of(member), at_.group().incarnation_of(member)};
}

std::vector<int> network_formation::connect() {
  auto addresses = processes_.texts_of(at_, address_name_, fabric_->address());
  std::vector<int> connections(addresses.size(), -1);
  auto has_lost = [&](int member) {
    std::lock_guard lock(fabric_->mutex());
    return fabric_->has_lost(process_of(member));
  };
  for (int i = 0; i < at_.group().size(); ++i) {
    if (i == at_.member()) continue;
    auto& address = addresses[static_cast<std::size_t>(i)];
    if (has_lost(i)) address = processes_.read_again(at_, address_name_, i);
    std::lock_guard lock(fabric_->mutex());
    connections[static_cast<std::size_t>(i)] = fabric_->connect(process_of(i), address);
  }
  return connections;
}

/// Members that are ready may have begun calls already, and one of these may have failed: that is for the
/// first call here, and not for this.
void network_formation::wait_for_all(ucx_exchange& exchange) {
  bool is_ready = false, has_told = false;
  for (auto next_look = clock::now() + look_interval;;) {
    exchange.receive();
    if (auto failure = exchange.received_failure(); failure && failure->sequence == 0) exchange.progress();
    auto missing = missing_members(exchange);
    if (!std::exchange(is_ready, is_ready || missing.empty()) && is_ready)
      exchange.send_to_all(net::message_kind::ready);
    if (is_ready && not_ready(exchange).empty()) return require_own_connections();
    auto now = clock::now();
    if (!std::exchange(has_told, has_told || now >= at_.half_time()) && has_told)
      tell_missing(exchange, missing);
    bool is_late = at_.time_left().count() == 0;
    if (now >= next_look || is_late) {
      look_at_store(exchange, is_ready ? std::vector<int>() : missing, is_late);
      next_look = now + look_interval;
    }
    pollfd event{exchange.event_fd(), POLLIN, 0};
    if (exchange.arm()) ::poll(&event, 1, static_cast<int>(poll_interval.count()));
  }
}

/// missing: none if this member is ready.
void network_formation::look_at_store(ucx_exchange& exchange, const std::vector<int>& missing, bool is_late) {
  require_own_connections();
  reconnect(exchange);
  if (is_late) throw_missing(exchange, missing);
  for (int each : missing.empty() ? not_ready(exchange) : missing) at_.check("connection", each);
}

void network_formation::reconnect(ucx_exchange& exchange) {
  for (int i : exchange.members_to_reconnect()) {
    auto address = processes_.read_again(at_, address_name_, i);
    std::unique_lock lock(fabric_->mutex());
    auto to = process_of(i);
    if (fabric_->has_lost(to) && fabric_->address_of(to) == address) continue;
    auto connection = fabric_->connect(to, address);
    lock.unlock();
    exchange.reconnect(i, connection);
  }
}

/// The others may have formed the group with the connections that this process has ended, and cannot go back.
void network_formation::require_own_connections() {
  if (fabric_->num_ends() != num_ends_)
    at_.fail("rank " + to_string(at_.rank_of(at_.member())) +
             " has ended its connections meanwhile, because a member of another group did not answer. Make a "
             "new group on all members");
}

template <class Condition>
std::vector<int> network_formation::members_where(const ucx_exchange& exchange, Condition holds) const {
  std::vector<int> found;
  for (int i = 0; i < at_.group().size(); ++i)
    if (i != at_.member() && holds(exchange.status_of(i))) found.push_back(i);
  return found;
}

std::vector<int> network_formation::missing_members(const ucx_exchange& exchange) const {
  return members_where(exchange, [](const peer_status& status) { return !status.is_connected; });
}

std::vector<int> network_formation::not_ready(const ucx_exchange& exchange) const {
  return members_where(exchange, [](const peer_status& status) {
    return !status.is_ready && !status.has_left && !status.has_aborted && status.lost_cause.empty();
  });
}

std::string network_formation::text_of_missing(const ucx_exchange& exchange, int member) const {
  auto lost_cause = exchange.status_of(member).lost_cause;
  return "rank " + to_string(at_.rank_of(member)) + " from rank " + to_string(at_.rank_of(at_.member())) +
         " over " + interface_ + (lost_cause.empty() ? "" : " (" + lost_cause + ")") + "; ";
}

/// Half of the time has passed: others may have a hello of all, and wait for this one.
void network_formation::tell_missing(const ucx_exchange& exchange, const std::vector<int>& missing) {
  std::string text;
  for (int i : missing) text += text_of_missing(exchange, i);
  at_.put("connections", text);
}

/// A member that is missing here has come if it has told whom it waits for itself.
void network_formation::throw_missing(const ucx_exchange& exchange, const std::vector<int>& missing) {
  std::string text;
  for (int i : missing)
    if (!exchange.status_of(i).lost_cause.empty() || at_.find_now("connections", i))
      text += text_of_missing(exchange, i);
  auto late = missing.empty() ? not_ready(exchange) : missing;
  if (late.empty()) return;  // they have come at the last moment
  if (missing.empty())
    for (int i : late) text += at_.find_now("connections", i).value_or("");
  if (text.empty()) at_.throw_late("connection", late.front());
  throw collective_error(collective_failure::transport, at_.group().name, 0, {},
                         "group " + at_.group().name + " has members that cannot reach each other: " + text);
}

}  // namespace troupe
