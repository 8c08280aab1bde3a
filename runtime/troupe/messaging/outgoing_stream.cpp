#include "troupe/messaging/outgoing_stream.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "troupe/error/errors.hpp"

namespace troupe::messaging {
namespace {

constexpr auto between_attempts = std::chrono::milliseconds(10);

bool means_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == EINPROGRESS;
}

iovec part(std::span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace

outgoing_stream::outgoing_stream(ends between)
    : ends_(std::move(between)), last_attempt_(clock::now() + ends_.attempts_go_on_for) {
  attempt();
}

void outgoing_stream::attempt() {
  try {
    socket_ = connect_to(ends_.peer);
  } catch (const system_failure& failure) {
    lose(std::string("cannot be made: ") + failure.what(), failure.error_number());
  }
}

/// After the handshake the peer sends nothing on this connection.
std::uint32_t outgoing_stream::wanted_events() const {
  auto events = key_ ? std::uint32_t{EPOLLRDHUP} : std::uint32_t{EPOLLRDHUP} | EPOLLIN;
  return kept_.empty() ? events : events | EPOLLOUT;
}

void outgoing_stream::progress(bool hung_up) {
  if (!socket_) {
    if (!failure_ && clock::now() >= next_attempt_) attempt();
    return;
  }
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return lose(std::string("broke: ") + std::strerror(error), error);
  if (!key_) shake_hands();
  keep_sending();
  if (hung_up && socket_) lose("broke: closed by the peer", ECONNRESET);
}

void outgoing_stream::shake_hands() {
  if (!handshake_) {
    if (!receive(greeting_bytes)) return;
    answer();
  }
  if (!socket_ || !receive(verdict_bytes)) return;
  if (received_[0] != verdict_accepted) return fail("is refused: the peer has another job secret");
  if (!handshake_->verify(handshake_role::responder,
                          std::span<const std::byte>(received_).subspan<1, sizeof(handshake_proof)>()))
    return fail("cannot be made: the process that listens there does not know the job's secret");
  establish();
}

void outgoing_stream::answer() {
  auto greeting = std::span<const std::byte>(received_).first<greeting_bytes>();
  if (auto fault = greeting_fault(greeting, control_protocol)) return fail("cannot be made: " + *fault);
  auto nonce = make_nonce();
  handshake_ = answer_greeting(greeting, ends_.secret, control_protocol, nonce);
  received_.clear();
  auto reply = reply_of(*handshake_, nonce);
  kept_.emplace_back(reply.begin(), reply.end());
  num_unsent_ += reply.size();
  keep_sending();
}

/// Sends the introduction, a frame that names both processes, then the messages that waited for the
/// handshake.
void outgoing_stream::establish() {
  key_.emplace(handshake_->key_of(handshake_role::initiator));
  std::vector<std::byte> introduction(ends_.peer.process.begin(), ends_.peer.process.end());
  introduction.insert(introduction.end(), ends_.own.begin(), ends_.own.end());
  send_frame(frame_kind::control, 0, introduction, {});
  for (; !waiting_.empty(); waiting_.pop_front()) {
    num_unsent_ -= waiting_.front().body.size();
    send_frame(waiting_.front().kind, waiting_.front().generation, {}, waiting_.front().body);
  }
}

/// Reads bytes of the handshake. Returns whether `size` bytes have arrived.
bool outgoing_stream::receive(std::size_t size) {
  std::array<std::byte, greeting_bytes> bytes;
  static_assert(greeting_bytes >= verdict_bytes);
  auto received = ::recv(socket_.get(), bytes.data(), size - received_.size(), MSG_DONTWAIT);
  if (received > 0) received_.insert(received_.end(), bytes.begin(), bytes.begin() + received);
  if (received == 0) lose("broke: closed by the peer", ECONNRESET);
  if (received < 0 && !means_later(errno) && errno != ENOTCONN)
    lose(std::string("broke: ") + std::strerror(errno), errno);
  return socket_ && received_.size() == size;
}

void outgoing_stream::send(frame_kind kind, std::uint64_t generation, std::span<const std::byte> body) {
  if (failure_) return;
  if (key_)
    send_frame(kind, generation, {}, body);
  else
    keep_waiting({kind, generation, {body.begin(), body.end()}});
}

void outgoing_stream::keep_waiting(message sent) {
  num_unsent_ += sent.body.size();
  waiting_.push_back(std::move(sent));
}

void outgoing_stream::send_frame(frame_kind kind, std::uint64_t generation,
                                 std::span<const std::byte> extension, std::span<const std::byte> body) {
  frame_header header{kind,
                      static_cast<std::uint32_t>(ends_.own_rank),
                      static_cast<std::uint32_t>(ends_.peer_rank),
                      generation,
                      sequence_++,
                      body.size()};
  auto head = seal_frame(*key_, header, extension, body);
  auto sent = kept_.empty() ? write(head, body) : 0;
  if (sent == head.size() + body.size() || failure_) return;
  auto& rest = kept_.emplace_back(head.begin(), head.end());
  rest.insert(rest.end(), body.begin(), body.end());
  if (kept_.size() == 1) sent_of_first_ = sent;
  num_unsent_ += rest.size() - sent;
}

void outgoing_stream::keep_sending() {
  while (socket_ && !kept_.empty()) {
    auto rest = std::span<const std::byte>(kept_.front()).subspan(sent_of_first_);
    auto sent = write(rest, {});
    if (!socket_) return;
    sent_of_first_ += sent;
    num_unsent_ -= sent;
    if (sent < rest.size()) return;
    kept_.pop_front();
    sent_of_first_ = 0;
  }
}

/// Writes both parts and returns how many bytes the socket took.
std::size_t outgoing_stream::write(std::span<const std::byte> head, std::span<const std::byte> body) {
  std::array parts = {part(head), part(body)};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  auto sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (!means_later(errno) && errno != ENOTCONN) lose(std::string("broke: ") + std::strerror(errno), errno);
  return 0;
}

/// Closes the socket. Before `last_attempt_` another attempt follows, and messages that wait for the
/// handshake are kept for it; otherwise the stream has failed.
void outgoing_stream::lose(const std::string& cause, int error_number) {
  auto now = clock::now();
  if (key_ || error_number == ECONNREFUSED || now >= last_attempt_) return fail(cause);
  socket_.reset();
  received_.clear();
  handshake_.reset();
  for (const auto& one : kept_) num_unsent_ -= one.size();
  num_unsent_ += sent_of_first_;
  kept_.clear();
  sent_of_first_ = 0;
  next_attempt_ = now + between_attempts;
}

void outgoing_stream::fail(const std::string& cause) {
  if (!failure_) failure_ = "the control connection " + cause;
  socket_.reset();
}

}  // namespace troupe::messaging
