#include "troupe/transport/ucx_transport/control_plane.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe::transport {

control_plane::control_plane(const std::string& interface, plane_settings& settings)
    : settings_(settings), incoming_(interface, settings, watch_) {}

bool control_plane::progress() {
  auto ready = watch_.ready();
  for (const auto& event : ready) {
    auto socket = event.data.fd;
    if (auto sender = rank_of_socket_.find(socket); sender != rank_of_socket_.end())
      on_ready(sender->second, (event.events & (EPOLLRDHUP | EPOLLHUP)) != 0);
    else
      incoming_.look_at(socket);
  }
  for (const auto& failure : incoming_.take_failures()) report(failure);
  incoming_.keep_time();
  if (is_reconnecting_) reconnect();
  return !ready.empty();
}

void control_plane::connect(const std::map<int, process_address>& peers) {
  std::map<int, messaging::process_id> members;
  for (const auto& [rank, address] : peers)
    if (rank != settings_.rank) members[rank] = messaging::decode_control_address(address.control).process;
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    auto wanted = peers.find(entry->first);
    bool keep =
        entry->second.stream && wanted != peers.end() && wanted->second.control == entry->second.address;
    if (!keep) {
      rank_of_socket_.erase(entry->second.watched);
      settings_.counters.with(entry->first).frame_bytes_queued = 0;
    }
    entry = keep ? std::next(entry) : connections_.erase(entry);
  }
  // The failures not yet reported are of closed connections. Reported now, they would be attributed to the
  // new ones.
  failures_.clear();
  for (const auto& [rank, process] : members)
    if (!connections_.contains(rank)) open(rank, peers.at(rank).control);
  incoming_.keep_only(members);
}

void control_plane::open(int rank, const std::vector<std::byte>& address) {
  auto& made = connections_[rank];
  made.address = address;
  made.stream = std::make_unique<messaging::outgoing_stream>(messaging::outgoing_stream::ends{
      settings_.rank, incoming_.address().process, rank, messaging::decode_control_address(address),
      settings_.secret, connection_timeout(settings_.world_size)});
  watch(rank, made);
}

bool control_plane::send(int to_rank, std::uint64_t generation, std::span<const std::byte> body) {
  if (body.size() > messaging::max_control_bytes)
    throw_invalid("send_control", "at most 64 MiB", std::to_string(body.size()) + " bytes");
  auto found = connections_.find(to_rank);
  if (found == connections_.end() || !found->second.stream) return true;
  auto& stream = *found->second.stream;
  stream.send(messaging::frame_kind::control, generation, body);
  auto& counted = settings_.counters.with(to_rank);
  counted.count_sent_frame(body.size());
  counted.frame_bytes_queued = stream.unsent_bytes();
  if (stream.failure() || !stream.all_sent()) watch(to_rank, found->second);
  return arm();
}

bool control_plane::announce_generation(std::uint64_t generation) {
  for (auto& [rank, each] : connections_) {
    if (!each.stream) continue;
    each.stream->send(messaging::frame_kind::generation_ended, generation, {});
    if (each.stream->failure() || !each.stream->all_sent()) watch(rank, each);
  }
  return arm();
}

/// Lets the stream to `rank`, whose socket is ready, make progress.
void control_plane::on_ready(int rank, bool hung_up) {
  auto& which = connections_.at(rank);
  which.stream->progress(hung_up);
  settings_.counters.with(rank).frame_bytes_queued = which.stream->unsent_bytes();
  watch(rank, which);
}

/// Reports the stream if it broke. Otherwise watches its socket, which may have changed.
void control_plane::watch(int rank, connection& opened) {
  if (opened.stream->failure())
    return report({rank, *opened.stream->failure() +
                             (opened.stream->was_made() ? std::string() : settings_.connection_advice)});
  auto socket = opened.stream->socket();
  if (socket != opened.watched) rank_of_socket_.erase(opened.watched);
  if (socket < 0)
    is_reconnecting_ = true;
  else if (socket == opened.watched)
    watch_.change(socket, opened.stream->wanted_events());
  else
    watch_.add(socket, opened.stream->wanted_events());
  if (socket >= 0) rank_of_socket_[socket] = rank;
  opened.watched = socket;
}

/// Streams without a socket make their next attempt if it is due.
void control_plane::reconnect() {
  is_reconnecting_ = false;
  for (auto& [rank, each] : connections_)
    if (each.stream && each.stream->socket() < 0) on_ready(rank, false);
}

bool control_plane::all_sent() const {
  return std::ranges::all_of(connections_, [](const auto& entry) {
    return !entry.second.stream || entry.second.stream->all_sent();
  });
}

/// Closes the stream and keeps the failure, unless that happened before.
void control_plane::report(const peer_failure& failure) {
  auto found = connections_.find(failure.rank);
  if (found == connections_.end() || !found->second.stream) return;
  rank_of_socket_.erase(std::exchange(found->second.watched, -1));
  found->second.stream.reset();
  settings_.counters.with(failure.rank).frame_bytes_queued = 0;
  failures_.push_back(failure);
}

void control_plane::break_connection(const peer_failure& failure) {
  report(failure);
  incoming_.drop(failure.rank);
}

}  // namespace troupe::transport
