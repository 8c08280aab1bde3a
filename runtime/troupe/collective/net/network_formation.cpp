#include "troupe/collective/net/network_formation.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "troupe/collective/calls/collective_error.hpp"
#include "troupe/collective/group/ucx_group.hpp"

namespace troupe::collective {
namespace {

/// How often a member that waits for the others looks into the store.
constexpr auto look_interval = std::chrono::milliseconds(100);
constexpr auto exchange_poll_interval = std::chrono::milliseconds(5);
/// To connect to a member that has come. Between them the pause doubles, up to the longest one.
constexpr int max_attempts = 3;
constexpr auto longest_pause = std::chrono::milliseconds(3200);

/// What a member puts for another one: the cause.
std::string name_of_lost_connection(world_rank to) { return "lost connection to " + to_string(to); }

}  // namespace

// Each generation has connections of its own, and so addresses.
network_formation::network_formation(rendezvous& point, ucx_group_resources& resources)
    : point_(point),
      processes_(resources.processes),
      fabric_(resources.network.fabric(point.group().generation)),
      num_ends_(fabric_->num_ends()),
      interface_(resources.network.options().interface),
      address_name_("network address of generation " + std::to_string(point.group().generation)) {}

network_fabric::process network_formation::process_of(int member) const {
  return {point_.rank_of(member), point_.group().incarnation_of(member)};
}

std::vector<int> network_formation::connect() {
  auto addresses = processes_.texts_of(point_, address_name_, [this] { return fabric_->address(); });
  std::vector<int> connections(addresses.size(), -1);
  auto has_lost = [&](int member) {
    std::lock_guard lock(fabric_->mutex());
    return fabric_->has_lost(process_of(member));
  };
  for (int i = 0; i < point_.group().size(); ++i) {
    auto& address = addresses[static_cast<std::size_t>(i)];
    if (i != point_.member() && has_lost(i)) address = processes_.read_again(point_, address_name_, i);
    hosts_.push_back(network_fabric::host_in(address));
    if (i == point_.member()) continue;
    std::lock_guard lock(fabric_->mutex());
    connections[static_cast<std::size_t>(i)] = fabric_->connect(process_of(i), address);
  }
  return connections;
}

/// Members that are ready may have begun calls already, and one of these may have failed: that is for the
/// first call here, and not for this.
void network_formation::wait_for_all(ucx_exchange& exchange) {
  for (auto next_look = clock::now() + look_interval;;) {
    exchange.receive();
    if (auto failure = exchange.received_failure(); failure && failure->sequence == 0) exchange.progress();
    auto statuses = exchange.statuses();
    if (!is_ready_ && missing(statuses).empty()) {
      is_ready_ = true;
      exchange.send_to_all(net::message_kind::ready);
    }
    tell_lost(statuses);
    if (is_ready_ && not_ready(statuses).empty()) return require_own_connections();
    auto now = clock::now();
    bool is_late = point_.time_left().count() == 0;
    if (now >= next_look || is_late) {
      look_at_store(exchange, statuses, is_late);
      next_look = now + look_interval;
    }
    pollfd event{exchange.event_fd(), POLLIN, 0};
    if (exchange.arm()) ::poll(&event, 1, static_cast<int>(exchange_poll_interval.count()));
  }
}

std::vector<int> network_formation::missing(const std::vector<peer_status>& statuses) const {
  std::vector<int> found;
  for (int i = 0; i < point_.group().size(); ++i)
    if (i != point_.member() && !statuses[static_cast<std::size_t>(i)].is_connected) found.push_back(i);
  return found;
}

/// A member without a hello over its present connection is missing, whether it was ready before or not.
std::vector<int> network_formation::not_ready(const std::vector<peer_status>& statuses) const {
  std::vector<int> found;
  for (int i = 0; i < point_.group().size(); ++i) {
    const auto& status = statuses[static_cast<std::size_t>(i)];
    bool has_ended = status.has_left || status.has_aborted;
    bool is_lost = status.is_connected && !status.lost_cause.empty();
    if (i != point_.member() && !status.is_ready && !has_ended && !is_lost) found.push_back(i);
  }
  return found;
}

void network_formation::look_at_store(ucx_exchange& exchange, const std::vector<peer_status>& statuses,
                                      bool is_late) {
  require_own_connections();
  auto awaited = is_ready_ ? not_ready(statuses) : missing(statuses);
  bool has_trouble = std::ranges::any_of(
      awaited, [&](int i) { return !statuses[static_cast<std::size_t>(i)].lost_cause.empty(); });
  if (has_trouble && !std::exchange(has_told_, true)) tell_missing(statuses);
  if (clock::now() >= point_.half_time() && !std::exchange(has_told_late_, true)) tell_missing(statuses);
  reconnect(exchange);
  if (is_late) throw_missing(statuses);
  for (int each : awaited) check(each);
}

/// Throws if member `from`, for which this one waits, cannot form the group.
void network_formation::check(int from) {
  point_.check("connection", from);
  auto lost = point_.find_now(name_of_lost_connection(point_.rank_of(point_.member())), from);
  if (lost) point_.fail(text_of_connection(from, point_.member(), *lost) + " while the group was formed");
}

void network_formation::reconnect(ucx_exchange& exchange) {
  bool has_reconnected = false;
  for (int i : exchange.members_to_reconnect()) {
    auto address = processes_.read_again(point_, address_name_, i);
    auto& made = attempts_[i];
    if (made.address != address) made = {.address = address, .count = 0, .next = {}};
    fail_if_unreachable(exchange, i, made);
    if (clock::now() < made.next) continue;
    made.next = clock::now() + std::min(look_interval * (1 << std::min(made.count++, 10)), longest_pause);
    int connection = 0;
    {
      std::lock_guard lock(fabric_->mutex());
      connection = fabric_->connect(process_of(i), address);
    }
    exchange.reconnect(i, connection);
    has_reconnected = true;
  }
  if (has_reconnected && is_ready_) exchange.send_to_all(net::message_kind::ready);
}

/// A member that has not come may come with another address.
void network_formation::fail_if_unreachable(const ucx_exchange& exchange, int member, const attempts& made) {
  if (made.count < max_attempts) return;
  auto status = exchange.status_of(member);
  if (status.lost_cause.empty() || !(status.has_come || point_.find_now("connections", member))) return;
  point_.fail(text_of_connection(point_.member(), member, status.lost_cause) + " each of the " +
              std::to_string(max_attempts) +
              " times that it was made. Is the address reachable from each host (--network-interface)?");
}

/// For members whose hello has come and whose connection was lost before they were ready.
void network_formation::tell_lost(const std::vector<peer_status>& statuses) {
  for (int i = 0; i < point_.group().size(); ++i) {
    const auto& status = statuses[static_cast<std::size_t>(i)];
    bool may_wait = status.is_connected && !status.lost_cause.empty() && !status.is_ready &&
                    !status.has_left && !status.has_aborted;
    if (i != point_.member() && may_wait && told_lost_.insert(i).second)
      point_.put(name_of_lost_connection(point_.rank_of(i)), status.lost_cause);
  }
}

/// The others may have formed the group with the connections that this process has ended, and cannot go back.
void network_formation::require_own_connections() {
  if (fabric_->num_ends() != num_ends_)
    point_.fail(
        rank_text(point_.member()) +
        " has ended its connections meanwhile, because a member of another group did not answer. Make a "
        "new group on all members");
}

std::string network_formation::text_of_connection(int from, int to, const std::string& lost_cause) const {
  const auto& host = hosts_[static_cast<std::size_t>(to)];
  return "the connection of " + rank_text(from) + " to " + rank_text(to) +
         (host.empty() ? "" : ", " + host + ',') + " over " + interface_ + " has ended (" + lost_cause + ')';
}

std::string network_formation::text_of_missing(const std::vector<peer_status>& statuses,
                                               const std::vector<int>& members) const {
  std::string text;
  for (int i : members) {
    const auto& cause = statuses[static_cast<std::size_t>(i)].lost_cause;
    text += rank_text(i) + " from " + rank_text(point_.member()) + " over " + interface_ +
            (cause.empty() ? "" : " (" + cause + ")") + "; ";
  }
  return text;
}

/// When a connection is lost, and when half of the time has passed: others may have a hello of all, and wait
/// for this one.
void network_formation::tell_missing(const std::vector<peer_status>& statuses) {
  point_.put("connections", text_of_missing(statuses, missing(statuses)));
}

/// A member that is missing here has come if it has told whom it waits for itself.
void network_formation::throw_missing(const std::vector<peer_status>& statuses) {
  auto absent = missing(statuses), late = is_ready_ ? not_ready(statuses) : absent;
  if (late.empty()) return;  // they have come at the last moment
  std::string text;
  if (is_ready_)
    for (int i : late) text += point_.find_now("connections", i).value_or("");
  std::erase_if(absent, [&](int i) {
    return !statuses[static_cast<std::size_t>(i)].has_come && !point_.find_now("connections", i);
  });
  text += text_of_missing(statuses, absent);
  if (text.empty()) point_.throw_late("connection", late.front());
  throw collective_error(
      collective_failure::transport, point_.group().name, 0, {},
      "group " + point_.group().name + " has members that cannot reach each other: " + text);
}

}  // namespace troupe::collective
