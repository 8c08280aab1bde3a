#include "troupe/collective/net/exchange/network_fabric.hpp"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/hash/fnv1a.hpp"
#include "troupe/ucx/ucx_library.hpp"

namespace troupe::collective {
namespace {

using clock = std::chrono::steady_clock;

/// A message or two for each group and member that are ahead of this one: some MB.
constexpr std::size_t max_early = 65536;
constexpr auto poll_interval = std::chrono::milliseconds(2);
/// Bytes in a millisecond of a link that is not taken for a member that does not answer: 0.8 Gb/s.
constexpr std::size_t slow_link = 100'000;
/// How long the engine leaves the connections to groups that poll or sleep on them.
constexpr auto engine_pause = std::chrono::milliseconds(20);

/// An address as the others read it: the number of ends before it, the host, and the worker's address, with
/// spaces between them.
struct fabric_address {
  std::uint32_t num_ends = 0;
  std::string host;
  std::string of_worker;
};

fabric_address parse_address(const std::string& text) {
  fabric_address parsed;
  auto first = text.find(' '), second = first == text.npos ? text.npos : text.find(' ', first + 1);
  if (second == text.npos ||
      std::from_chars(text.data(), text.data() + first, parsed.num_ends).ptr != text.data() + first)
    throw_invalid("network address", "a number, a host and the address of a UCX worker",
                  std::to_string(text.size()) + " other bytes");
  parsed.host = text.substr(first + 1, second - first - 1);
  parsed.of_worker = text.substr(second + 1);
  return parsed;
}

}  // namespace

network_fabric::network_fabric(ucp_context_h context, std::chrono::milliseconds flush_timeout,
                               std::chrono::milliseconds answer_timeout, progress_engine& engine,
                               std::string host)
    : flush_timeout_(flush_timeout),
      answer_timeout_(answer_timeout),
      host_(std::move(host)),
      early_(max_early),
      ended_([this](void* descriptor) { connections_.release(descriptor); }),
      connections_(context, *this),
      place_(std::in_place, engine, static_cast<progress_engine::client&>(*this)) {}

network_fabric::~network_fabric() {
  place_.reset();
  ucx::ucx_log_suppressor lost_peers_are_expected;
  poll_until([&] { return !ended_.has_aborted(); }, flush_timeout_, nullptr);
  connections_.flush(clock::now() + flush_timeout_);
}

std::string network_fabric::address() {
  std::lock_guard lock(mutex_);
  return std::to_string(connections_.num_ends()) + ' ' + host_ + ' ' + connections_.address();
}

std::string network_fabric::host_in(const std::string& address) { return parse_address(address).host; }

std::uint64_t network_fabric::number_of(const group_description& group) {
  fnv1a hash;
  hash.add(group.name);
  for (int i = 0; i < group.size(); ++i)
    hash.add(256 + static_cast<std::uint64_t>(group.rank_of(i))).add(group.incarnation_of(i));
  return hash.value();
}

bool network_fabric::has_lost(const process& to) const {
  auto known = connected_.find(to);
  return known != connected_.end() && connections_.is_lost(known->second.connection);
}

int network_fabric::connect(const process& to, const std::string& address) {
  auto parsed = parse_address(address);
  auto known = connected_.find(to);
  if (known != connected_.end()) {
    auto connection = known->second.connection;
    bool is_newer = parsed.num_ends > num_ends_of(connection);
    if (!is_newer && !connections_.is_lost(connection)) return connection;
    connections_.lose(connection, "its process has ended its connections");
  }
  auto connection = connections_.connect(parsed.of_worker);
  made_.resize(static_cast<std::size_t>(connection) + 1);
  made_.back() = {to.first, parsed.num_ends};
  connected_[to] = {connection, address};
  place_->request();
  return connection;
}

std::uint32_t network_fabric::num_ends_of(int connection) const {
  return made_[static_cast<std::size_t>(connection)].num_ends;
}

void network_fabric::add(std::uint64_t number, message_owner& part) {
  if (parts_.contains(number) || ended_.contains(number))
    throw_invalid("make_ucx_group", "a name that no group of these ranks has",
                  "that of a group that some member has not ended");
  auto early = early_.take(number);
  if (early.is_incomplete)
    throw std::runtime_error("more than " + std::to_string(early_.most()) +
                             " messages of groups that this process had not made were waiting, and those of "
                             "this group were dropped: make groups on all members at the same time");
  parts_[number] = &part;
  for (const auto& each : early.messages) part.on_message(each.header, each.bytes, nullptr);
}

void network_fabric::remove(std::uint64_t number, std::map<int, ended_groups::member> others,
                            bool is_aborted) {
  if (parts_.erase(number) > 0) ended_.add(number, std::move(others), is_aborted);
}

bool network_fabric::on_message(const net::message_header& header, std::span<const std::byte> body,
                                void* descriptor) {
  if (ended_.contains(header.group)) return ended_.on_message(header, descriptor);
  auto found = parts_.find(header.group);
  if (found == parts_.end()) {
    // Elements come from members that have heard of all others: they are of a group that has ended here.
    if (header.kind != net::message_kind::elements) early_.keep(header, body);
    return false;
  }
  bool is_deferred = found->second->on_message(header, body, descriptor);
  if (found->second != polling_) found->second->wake();
  return is_deferred;
}

void network_fabric::on_done(ucx_message& done) {
  if (!done.owner) return;
  done.owner->on_done(done);
  if (done.owner != polling_) done.owner->wake();
}

void network_fabric::on_lost(int connection, const std::string& cause) {
  ended_.on_lost(connection);
  for (auto& [number, part] : parts_) {
    part->on_lost(connection, cause);
    if (part != polling_) part->wake();
  }
}

bool network_fabric::poll(const message_owner* waiting) {
  ucx::ucx_log_suppressor failures_are_reported_as_errors;
  struct scope {
    const message_owner*& polling;
    ~scope() { polling = nullptr; }
  } ends{polling_ = waiting};
  return connections_.progress();
}

bool network_fabric::progress(const message_owner* waiting) {
  if (waiting) was_polled_.store(true, std::memory_order_relaxed);
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && poll(waiting);
}

bool network_fabric::progress_next(const message_owner* waiting) {
  std::lock_guard lock(mutex_);
  return poll(waiting);
}

bool network_fabric::arm() {
  std::lock_guard lock(mutex_);
  return connections_.arm();
}

bool network_fabric::prepare_sleep(wake_sources& sources) {
  if (was_polled_.exchange(false, std::memory_order_relaxed) || num_sleepers_ > 0) {
    sources.at_most = std::min<std::chrono::microseconds>(sources.at_most, engine_pause);
    return true;
  }
  sources.descriptors.push_back(event_fd());
  return arm();
}

/// Whether `is_done`, which is called with the lock, has returned true in time.
template <class Condition>
bool network_fabric::poll_until(Condition is_done, std::chrono::milliseconds at_most,
                                const message_owner* waiting) {
  for (auto end = clock::now() + at_most;;) {
    {
      std::lock_guard lock(mutex_);
      poll(waiting);
      if (is_done()) return true;
      if (clock::now() >= end) return false;
      if (!connections_.arm()) continue;
    }
    pollfd event{event_fd(), POLLIN, 0};
    ::poll(&event, 1, static_cast<int>(poll_interval.count()));
  }
}

void network_fabric::finish_transfers(const message_owner& owner) {
  auto are_finished = [&] {
    if (connections_.has_in_flight(&owner)) return false;
    connections_.forget(&owner);
    return true;
  };
  std::unique_lock lock(mutex_);
  auto at_most =
      answer_timeout_ + std::chrono::milliseconds(connections_.bytes_in_flight(&owner) / slow_link);
  lock.unlock();
  if (poll_until(are_finished, at_most, &owner)) return;
  auto cause =
      " did not answer within " + std::to_string(at_most.count()) + " ms after the failure of a group";
  announce_end(owner, cause);
  lock.lock();
  if (are_finished()) return;  // meanwhile, or another group has ended the connections
  connections_.end("a member" + cause);
  place_->request();
}

/// Gives the groups the time to tell their members, which otherwise take this process for lost.
void network_fabric::announce_end(const message_owner& owner, const std::string& cause) {
  std::set<int> silent;
  {
    std::lock_guard lock(mutex_);
    silent = connections_.in_flight_of(&owner);
    std::set<world_rank> ranks;
    for (int each : silent) ranks.insert(made_[static_cast<std::size_t>(each)].to);
    if (ranks.empty() || parts_.empty()) return;  // they have answered meanwhile, or nobody is to be told
    std::string text;
    for (auto rank : ranks) text += (text.empty() ? "rank " : ", rank ") + to_string(rank);
    for (auto& [number, part] : parts_) {
      part->on_ending({ranks.begin(), ranks.end()}, text + cause);
      part->wake();
    }
  }
  poll_until([&] { return !connections_.has_other_in_flight(silent); }, flush_timeout_, &owner);
}

}  // namespace troupe::collective
