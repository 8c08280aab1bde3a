#include "troupe/messaging/incoming_stream.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace troupe::messaging {
namespace {

constexpr std::size_t portion_bytes = std::size_t{16} << 10;

}  // namespace

incoming_stream::incoming_stream(posix::unique_fd socket, std::span<const std::byte> secret)
    : socket_(std::move(socket)), responder_(secret, control_protocol) {
  send(responder_.greeting());
}

/// Sends without waiting: a new socket has room for the few bytes of a handshake. If it has not, the other
/// end times out.
void incoming_stream::send(std::span<const std::byte> bytes) const {
  ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

incoming_stream::filling incoming_stream::fill() {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  auto end = bytes_.size();
  auto most = key_ ? portion_bytes : reply_bytes - end;
  bytes_.resize(end + most);
  auto received = ::recv(socket_.get(), bytes_.data() + end, most, MSG_DONTWAIT);
  bool later = received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  bytes_.resize(end + (received > 0 ? static_cast<std::size_t>(received) : 0));
  if (received > 0) return filling::more;
  return later ? filling::nothing_yet : filling::closed;
}

bool incoming_stream::shake_hands() {
  if (key_ || bytes_.size() < reply_bytes) return true;
  auto keys = responder_.check(std::span<const std::byte>(bytes_).first<reply_bytes>());
  send(handshake_responder::verdict(keys));
  if (keys) key_.emplace(keys->key_of(handshake_role::initiator));
  begin_ = reply_bytes;
  return keys.has_value();
}

std::variant<std::optional<incoming_stream::frame>, frame_fault> incoming_stream::next() {
  auto rest = std::span<const std::byte>(bytes_).subspan(begin_);
  if (!key_ || rest.size() < frame_header_bytes) return std::nullopt;
  auto measured = measure_frame(rest.first<frame_header_bytes>());
  if (auto* fault = std::get_if<frame_fault>(&measured)) return *fault;
  auto lengths = std::get<frame_measure>(measured);
  if (lengths.kind == frame_kind::tensor) return frame_fault::kind;
  if (lengths.body_bytes > max_control_bytes) return frame_fault::length;
  auto body_bytes = static_cast<std::size_t>(lengths.body_bytes);
  if (rest.size() < lengths.head_bytes + body_bytes) return std::nullopt;
  begin_ += lengths.head_bytes + body_bytes;
  return frame{rest.first(lengths.head_bytes), rest.subspan(lengths.head_bytes, body_bytes)};
}

}  // namespace troupe::messaging
