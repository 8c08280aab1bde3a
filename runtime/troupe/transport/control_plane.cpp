#include "troupe/transport/control_plane.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <exception>

#include "troupe/error/errors.hpp"
#include "troupe/wire/byte_order.hpp"

namespace troupe {
namespace {

/// Connections that have not proved who they are: more than this, and the oldest go.
constexpr std::size_t most_strangers = 64;
constexpr std::uint64_t greeting_sequence = 0;

std::vector<std::byte> greeting(const process_id& to, const process_id& from) {
  std::vector<std::byte> bytes(to.begin(), to.end());
  bytes.insert(bytes.end(), from.begin(), from.end());
  return bytes;
}

}  // namespace

control_plane::control_plane(const std::string& interface, plane_settings& settings)
    : settings_(settings),
      listener_(listen_on(interface)),
      epoll_(static_cast<int>(check_posix(::epoll_create1(EPOLL_CLOEXEC), "make an epoll descriptor"))) {
  watch(listener_.socket.get(), EPOLLIN, true);
}

void control_plane::watch(int socket, std::uint32_t events, bool is_new) {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.fd = socket;
  check_posix(::epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &wanted),
              "watch a socket");
}

bool control_plane::progress() {
  std::array<epoll_event, 32> events;
  auto count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (const auto& event : std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
    auto socket = event.data.fd;
    if (socket == listener_.socket.get()) accept_some();
    if (auto sender = rank_of_socket_.find(socket); sender != rank_of_socket_.end())
      look_at(sender->second, (event.events & (EPOLLRDHUP | EPOLLHUP)) != 0);
    if (auto reader = incoming_.find(socket); reader != incoming_.end()) read(reader->second);
  }
  return count > 0;
}

// --- the sending ends

void control_plane::connect(const std::map<int, node_address>& peers) {
  std::map<int, process_id> members;
  for (const auto& [rank, address] : peers)
    if (rank != settings_.rank) members[rank] = decode_control_address(address.control).process;
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    auto wanted = peers.find(entry->first);
    bool keep =
        entry->second.stream && wanted != peers.end() && wanted->second.control == entry->second.address;
    if (!keep && entry->second.stream) rank_of_socket_.erase(entry->second.stream->socket());
    entry = keep ? std::next(entry) : connections_.erase(entry);
  }
  // What is still to be reported is about connections that are gone; said now, it would be held against new
  // ones.
  failures_.clear();
  for (const auto& [rank, process] : members)
    if (!connections_.contains(rank)) open(rank, peers.at(rank).control);
  drop_incoming(members);
}

void control_plane::open(int rank, const std::vector<std::byte>& address) {
  auto& made = connections_[rank];
  made.address = address;
  try {
    auto peer = decode_control_address(address);
    made.stream = std::make_unique<outgoing_stream>(connect_to(peer));
    watch(made.stream->socket(), EPOLLRDHUP | EPOLLOUT, true);
    rank_of_socket_[made.stream->socket()] = rank;
    greet(rank, peer, *made.stream);
  } catch (const system_failure& failure) {
    made.stream.reset();
    failures_.push_back({rank, std::string("the control connection cannot be made: ") + failure.what()});
  }
}

void control_plane::greet(int rank, const control_address& peer, outgoing_stream& stream) {
  frame_header header{frame_kind::control,
                      static_cast<std::uint32_t>(settings_.rank),
                      static_cast<std::uint32_t>(rank),
                      0,
                      stream.next_sequence(),
                      0};
  stream.send(seal_frame(settings_.key, header, greeting(peer.process, listener_.address.process), {}), {});
}

bool control_plane::send(int to_rank, std::uint64_t generation, std::span<const std::byte> body) {
  if (body.size() > longest_control_bytes)
    throw_invalid("send_control", "at most 64 MiB", std::to_string(body.size()) + " bytes");
  auto found = connections_.find(to_rank);
  if (found == connections_.end() || !found->second.stream) return true;
  auto& stream = *found->second.stream;
  frame_header header{frame_kind::control,
                      static_cast<std::uint32_t>(settings_.rank),
                      static_cast<std::uint32_t>(to_rank),
                      generation,
                      stream.next_sequence(),
                      body.size()};
  stream.send(seal_frame(settings_.key, header, {}, body), body);
  ++settings_.counters.control_frames_sent;
  if (stream.failure() || !stream.all_sent()) look_at(to_rank, false);
  return arm();
}

/// Gives a sending end the attention it needs: a report if it broke, a watch for room if something is kept.
void control_plane::look_at(int rank, bool hung_up) {
  auto& stream = *connections_.at(rank).stream;
  stream.flush();
  if (hung_up) stream.fail("closed by the peer");
  if (stream.failure()) return report({rank, "the control connection broke: " + *stream.failure()});
  watch(stream.socket(), stream.all_sent() ? EPOLLRDHUP : EPOLLRDHUP | EPOLLOUT, false);
}

bool control_plane::all_sent() const {
  return std::ranges::all_of(connections_, [](const auto& entry) {
    return !entry.second.stream || entry.second.stream->all_sent();
  });
}

/// Closes the sending end and keeps the failure, unless that happened before.
void control_plane::report(const peer_failure& failure) {
  auto found = connections_.find(failure.rank);
  if (found == connections_.end() || !found->second.stream) return;
  rank_of_socket_.erase(found->second.stream->socket());
  found->second.stream.reset();
  failures_.push_back(failure);
}

void control_plane::break_connection(const peer_failure& failure) {
  report(failure);
  std::erase_if(incoming_, [&](const auto& entry) {
    return entry.second.from && entry.second.from->rank == failure.rank;
  });
}

// --- the receiving ends

/// A few only, so that greetings are read in between.
void control_plane::accept_some() {
  for (int left = 16; left > 0; --left) {
    unique_fd socket(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0) return;
    watch(socket.get(), EPOLLIN, true);
    auto number = socket.get();
    incoming_.emplace(number, incoming_stream(std::move(socket), ++accepted_));
    limit_strangers();
  }
}

void control_plane::limit_strangers() {
  auto oldest = incoming_.end();
  std::size_t count = 0;
  for (auto entry = incoming_.begin(); entry != incoming_.end(); ++entry) {
    if (entry->second.from) continue;
    ++count;
    if (oldest == incoming_.end() || entry->second.serial() < oldest->second.serial()) oldest = entry;
  }
  if (count > most_strangers) incoming_.erase(oldest);
}

/// Takes in a portion, and drops the stream at its end or if it is refused.
void control_plane::read(incoming_stream& stream) {
  auto filled = stream.fill();
  if (!receive_all(stream) || filled == incoming_stream::filling::closed) incoming_.erase(stream.socket());
}

/// False: the stream is refused.
bool control_plane::receive_all(incoming_stream& stream) {
  for (;;) {
    auto next = stream.next();
    std::optional<std::string> problem;
    if (auto* fault = std::get_if<frame_fault>(&next))
      problem = to_string(*fault);
    else if (const auto& frame = std::get<0>(next))
      problem = receive(stream, *frame);
    else
      return true;
    if (!problem) continue;
    refuse(stream, *problem);
    return false;
  }
}

/// What is wrong with the frame, if anything.
std::optional<std::string> control_plane::receive(incoming_stream& stream,
                                                  const incoming_stream::frame& frame) {
  auto opened = open_frame(settings_.key, frame.head, frame.body.size(), frame.body);
  if (auto* fault = std::get_if<frame_fault>(&opened)) return std::string(to_string(*fault));
  const auto& head = std::get<frame_head>(opened);
  if (head.header.kind != frame_kind::control || !std::cmp_equal(head.header.to_rank, settings_.rank))
    return "not meant for this node";
  if (!stream.from) return receive_greeting(stream, head);
  if (!std::cmp_equal(head.header.from_rank, stream.from->rank) ||
      head.header.sequence != ++stream.from->sequence)
    return "out of order";
  arrivals_.push_back({stream.from->rank, head.header.generation, {frame.body.begin(), frame.body.end()}});
  return std::nullopt;
}

std::optional<std::string> control_plane::receive_greeting(incoming_stream& stream, const frame_head& head) {
  process_id from{};
  byte_reader reader(head.extension);
  auto to = reader.take(from.size());
  std::ranges::copy(reader.take(from.size()), from.begin());
  if (!reader.ok() || !reader.at_end() || head.header.sequence != greeting_sequence ||
      !std::ranges::equal(to, listener_.address.process))
    return "not a greeting for this process";
  stream.from = {static_cast<int>(head.header.from_rank), from, greeting_sequence};
  replace_incoming(stream);
  return std::nullopt;
}

/// A sender that connects anew has closed its older connection; what is still in that comes first.
void control_plane::replace_incoming(const incoming_stream& newer) {
  for (auto entry = incoming_.begin(); entry != incoming_.end();) {
    auto& older = entry->second;
    bool replaced = &older != &newer && older.from && older.from->rank == newer.from->rank &&
                    older.from->process == newer.from->process;
    if (!replaced) {
      ++entry;
      continue;
    }
    while (older.fill() == incoming_stream::filling::more && receive_all(older)) {
    }
    entry = incoming_.erase(entry);
  }
}

void control_plane::refuse(const incoming_stream& stream, const std::string& cause) {
  ++settings_.counters.bad_frames;
  if (stream.from) report({stream.from->rank, "it sent a bad frame: " + cause});
}

/// Closes the connections of processes that are no members, like one that was stopped and replaced.
void control_plane::drop_incoming(const std::map<int, process_id>& members) {
  std::erase_if(incoming_, [&](const auto& entry) {
    const auto& from = entry.second.from;
    if (!from) return false;
    auto member = members.find(from->rank);
    return member == members.end() || member->second != from->process;
  });
}

}  // namespace troupe
