#include "troupe/transport/ucx_transport/incoming_connections.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "troupe/wire/byte_order.hpp"

namespace troupe::transport {
namespace {

/// Unauthenticated peers allowed in addition to the number of members, which may all connect at once. Fewer
/// if the process's limit of descriptors is low.
constexpr rlim_t max_unauthenticated = 64;
constexpr rlim_t descriptors_per_peer = 16;
/// Further connections are accepted in the next call, so that unauthenticated peers are read and closed in
/// between.
constexpr int max_accepted_at_once = 16;
constexpr auto accepting_pause = std::chrono::milliseconds(50);
constexpr std::uint64_t introduction_sequence = 0;

}  // namespace

incoming_connections::incoming_connections(const std::string& interface, plane_settings& settings,
                                           posix::epoll_set& watch)
    : settings_(settings), watch_(watch), listener_(messaging::listen_on(interface)) {
  watch_.add(listener_.socket.get(), EPOLLIN);
}

void incoming_connections::look_at(int socket) {
  if (socket == listener_.socket.get()) return accept_some();
  if (auto peer = unauthenticated_.find(socket); peer != unauthenticated_.end())
    return read_unauthenticated(peer);
  if (auto member = members_.find(socket); member != members_.end()) read_member(member);
}

void incoming_connections::accept_some() {
  for (int left = max_accepted_at_once; left > 0; --left) {
    posix::unique_fd socket(
        ::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause_accepting();
      return;
    }
    make_space_for_unauthenticated();
    watch_.add(socket.get(), EPOLLIN);
    auto number = socket.get();
    unauthenticated_.emplace(number, messaging::incoming_stream(std::move(socket), settings_.secret));
  }
}

/// Called when descriptors or memory run out: the listener would stay readable and cause busy polling.
void incoming_connections::pause_accepting() {
  watch_.change(listener_.socket.get(), 0);
  accept_again_ = clock::now() + accepting_pause;
  end_oldest_unauthenticated();
}

void incoming_connections::make_space_for_unauthenticated() {
  rlimit descriptors{};
  check_posix(::getrlimit(RLIMIT_NOFILE, &descriptors), "ask for the limit of descriptors");
  auto expected = std::max(num_members_, static_cast<std::size_t>(settings_.world_size));
  auto most = std::min(max_unauthenticated, descriptors.rlim_cur / descriptors_per_peer) + expected;
  if (unauthenticated_.size() >= most) end_oldest_unauthenticated();
}

/// Closes the oldest connection whose handshake has not succeeded. One whose handshake has succeeded has been
/// sent its acceptance and would take the close for a failure.
void incoming_connections::end_oldest_unauthenticated() {
  auto oldest = unauthenticated_.end();
  for (auto each = unauthenticated_.begin(); each != unauthenticated_.end(); ++each)
    if (!each->second.is_authenticated() &&
        (oldest == unauthenticated_.end() || each->second.opened() < oldest->second.opened()))
      oldest = each;
  if (oldest != unauthenticated_.end()) unauthenticated_.erase(oldest);
}

void incoming_connections::keep_time() {
  if (unauthenticated_.empty() && !accept_again_) return;
  auto now = clock::now();
  auto longest = connection_timeout(settings_.world_size);
  std::erase_if(unauthenticated_, [&](const auto& entry) { return now - entry.second.opened() > longest; });
  if (!accept_again_ || now < *accept_again_) return;
  accept_again_.reset();
  watch_.change(listener_.socket.get(), EPOLLIN);
}

/// Reads from a peer that has not introduced itself, and moves it to the members once it has.
void incoming_connections::read_unauthenticated(stream_map::iterator peer) {
  auto& stream = peer->second;
  auto filled = stream.fill();
  if (!stream.shake_hands()) {
    ++settings_.counters.bad_frames;
    unauthenticated_.erase(peer);
  } else if (!receive_all(stream) || filled == messaging::incoming_stream::filling::closed) {
    unauthenticated_.erase(peer);
  } else if (stream.from) {
    members_.insert(unauthenticated_.extract(peer));
  }
}

/// Reads from a member, and closes the connection at the end of the stream or after a bad frame.
void incoming_connections::read_member(stream_map::iterator member) {
  auto filled = member->second.fill();
  if (!receive_all(member->second) || filled == messaging::incoming_stream::filling::closed)
    members_.erase(member);
}

/// Handles all complete frames. False: one of them is bad, and the stream must be closed.
bool incoming_connections::receive_all(messaging::incoming_stream& stream) {
  for (;;) {
    auto next = stream.next();
    std::optional<std::string> problem;
    if (auto* fault = std::get_if<messaging::frame_fault>(&next))
      problem = to_string(*fault);
    else if (const auto& frame = std::get<0>(next))
      problem = receive(stream, *frame);
    else
      return true;
    if (!problem) continue;
    ++settings_.counters.bad_frames;
    if (stream.from) failures_.push_back({stream.from->rank, "it sent a bad frame: " + *problem});
    return false;
  }
}

/// Handles a frame. Returns what is wrong with it, or nothing.
std::optional<std::string> incoming_connections::receive(messaging::incoming_stream& stream,
                                                         const messaging::incoming_stream::frame& frame) {
  auto opened = open_frame(stream.key(), frame.head, frame.body.size(), frame.body);
  if (auto* fault = std::get_if<messaging::frame_fault>(&opened)) return std::string(to_string(*fault));
  const auto& head = std::get<messaging::frame_head>(opened);
  if (!std::cmp_equal(head.header.to_rank, settings_.rank)) return "it is not addressed to this process";
  if (!stream.from) return receive_introduction(stream, head);
  if (!std::cmp_equal(head.header.from_rank, stream.from->rank) ||
      head.header.sequence != ++stream.from->sequence)
    return "it is out of order";
  if (head.header.kind == messaging::frame_kind::generation_ended) {
    notices_.push_back({stream.from->rank, head.header.generation});
    return std::nullopt;
  }
  arrivals_.push_back({stream.from->rank, head.header.generation, {frame.body.begin(), frame.body.end()}});
  return std::nullopt;
}

std::optional<std::string> incoming_connections::receive_introduction(messaging::incoming_stream& stream,
                                                                      const messaging::frame_head& head) {
  messaging::process_id from{};
  wire::byte_reader reader(head.extension);
  auto to = reader.take(from.size());
  std::ranges::copy(reader.take(from.size()), from.begin());
  if (head.header.kind != messaging::frame_kind::control || !reader.ok() || !reader.at_end() ||
      head.header.sequence != introduction_sequence || !std::ranges::equal(to, listener_.address.process))
    return "it is not an introduction to this process";
  stream.from = {static_cast<int>(head.header.from_rank), from, introduction_sequence};
  replace(stream);
  return std::nullopt;
}

/// Closes the older connection of a sender that has connected again, after reading its remaining frames.
void incoming_connections::replace(const messaging::incoming_stream& newer) {
  for (auto entry = members_.begin(); entry != members_.end();) {
    auto& older = entry->second;
    if (older.from->rank != newer.from->rank || older.from->process != newer.from->process) {
      ++entry;
      continue;
    }
    while (older.fill() == messaging::incoming_stream::filling::more && receive_all(older)) {
    }
    entry = members_.erase(entry);
  }
}

void incoming_connections::drop(int rank) {
  std::erase_if(members_, [&](const auto& entry) { return entry.second.from->rank == rank; });
}

void incoming_connections::keep_only(const std::map<int, messaging::process_id>& members) {
  num_members_ = members.size();
  std::erase_if(members_, [&](const auto& entry) {
    auto member = members.find(entry.second.from->rank);
    return member == members.end() || member->second != entry.second.from->process;
  });
}

}  // namespace troupe::transport
