#include "troupe/collective/shm/peer_process.hpp"

#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

enum : std::uint32_t { segment_sent, segment_released };

struct segment_message {
  std::uint32_t kind = segment_sent;
  std::uint32_t unused = 0;
  std::uint64_t id = 0;
  std::uint64_t size_bytes = 0;
};

/// A message, which may carry one file descriptor.
struct packet {
  segment_message message;
  iovec bytes{&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr head{};

  packet() {
    head.msg_iov = &bytes;
    head.msg_iovlen = 1;
  }
  packet(const packet&) = delete;
  packet& operator=(const packet&) = delete;

  void reserve_descriptor() {
    head.msg_control = control;
    head.msg_controllen = sizeof control;
  }
  void attach(int fd) {
    reserve_descriptor();
    auto* part = CMSG_FIRSTHDR(&head);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  }
  unique_fd attached() const {
    const auto* part = CMSG_FIRSTHDR(&head);
    if (!part || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) return unique_fd();
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
    return unique_fd(fd);
  }
};

}  // namespace

void peer_process::send_segment(const shared_segment& own) {
  std::lock_guard lock(mutex_);
  if (sent_.contains(own.id)) return;
  send_message(segment_sent, own.id, own.size_bytes, own.fd.get());
  sent_.insert(own.id);
}

void peer_process::release_segments(const std::vector<std::uint64_t>& ids) {
  std::lock_guard lock(mutex_);
  for (auto id : ids)
    if (sent_.erase(id) > 0) send_message(segment_released, id, 0, -1);
}

void peer_process::send_message(std::uint32_t kind, std::uint64_t id, std::uint64_t size_bytes, int fd) {
  packet sent;
  sent.message = {kind, 0, id, size_bytes};
  if (fd >= 0) sent.attach(fd);
  if (::sendmsg(socket_.get(), &sent.head, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
  if (errno == EPIPE || errno == ECONNRESET) return;  // it has ended, which peer_connector notices
  throw system_failure("send a shared segment to a process that has not received the ones before", errno);
}

std::shared_ptr<mapping> peer_process::find_segment(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  while (!received_.contains(id))
    if (!receive_one()) return nullptr;
  return received_.at(id);
}

void peer_process::receive_segments() {
  std::lock_guard lock(mutex_);
  while (receive_one()) {
  }
}

/// Receives one message. Whether there was one.
bool peer_process::receive_one() {
  packet received;
  received.reserve_descriptor();
  auto size = ::recvmsg(socket_.get(), &received.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size <= 0) return false;
  auto fd = received.attached();
  const auto& message = received.message;
  if (size != sizeof message) throw std::runtime_error("[shared segment] got a message of another program");
  if (message.kind == segment_released)
    received_.erase(message.id);
  else
    received_[message.id] = map_received_segment(fd.get(), message.size_bytes);
  return true;
}

}  // namespace troupe
