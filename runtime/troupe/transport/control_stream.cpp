#include "troupe/transport/control_stream.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace troupe {
namespace {

constexpr std::size_t portion_bytes = std::size_t{16} << 10;

bool means_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == EINPROGRESS;
}

iovec part(std::span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace

void outgoing_stream::send(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (failure_) return;
  auto sent = kept_.empty() ? write(head, body) : 0;
  if (sent == head.size() + body.size() || failure_) return;
  auto& rest = kept_.emplace_back(head.begin(), head.end());
  rest.insert(rest.end(), body.begin(), body.end());
  if (kept_.size() == 1) sent_of_first_ = sent;
}

void outgoing_stream::flush() {
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) fail(std::strerror(error));
  while (!failure_ && !kept_.empty()) {
    auto rest = std::span<const std::byte>(kept_.front()).subspan(sent_of_first_);
    auto sent = write(rest, {});
    sent_of_first_ += sent;
    if (sent < rest.size()) return;
    kept_.pop_front();
    sent_of_first_ = 0;
  }
}

std::size_t outgoing_stream::write(std::span<const std::byte> head, std::span<const std::byte> body) {
  std::array parts = {part(head), part(body)};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  auto sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (!means_later(errno) && errno != ENOTCONN) fail(std::strerror(errno));
  return 0;
}

incoming_stream::filling incoming_stream::fill() {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  auto end = bytes_.size();
  bytes_.resize(end + portion_bytes);
  auto received = ::recv(socket_.get(), bytes_.data() + end, portion_bytes, MSG_DONTWAIT);
  bool later = received < 0 && means_later(errno);
  bytes_.resize(end + (received > 0 ? static_cast<std::size_t>(received) : 0));
  if (received > 0) return filling::more;
  return later ? filling::nothing_yet : filling::closed;
}

std::variant<std::optional<incoming_stream::frame>, frame_fault> incoming_stream::next() {
  auto rest = std::span<const std::byte>(bytes_).subspan(begin_);
  if (rest.size() < frame_header_bytes) return std::nullopt;
  auto measured = measure_frame(rest.first<frame_header_bytes>());
  if (auto* fault = std::get_if<frame_fault>(&measured)) return *fault;
  auto lengths = std::get<frame_measure>(measured);
  if (lengths.kind != frame_kind::control) return frame_fault::kind;
  if (lengths.body_bytes > longest_control_bytes) return frame_fault::length;
  auto body_bytes = static_cast<std::size_t>(lengths.body_bytes);
  if (rest.size() < lengths.head_bytes + body_bytes) return std::nullopt;
  begin_ += lengths.head_bytes + body_bytes;
  return frame{rest.first(lengths.head_bytes), rest.subspan(lengths.head_bytes, body_bytes)};
}

}  // namespace troupe
