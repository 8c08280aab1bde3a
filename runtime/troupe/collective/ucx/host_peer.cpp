#include "troupe/collective/ucx/host_peer.hpp"

#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

enum : std::uint32_t { segment_given, segment_ended };

struct segment_message {
  std::uint32_t kind = segment_given;
  std::uint32_t unused = 0;
  std::uint64_t id = 0;
  std::uint64_t size_bytes = 0;
};

/// A message and room for one descriptor beside it.
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

  void make_room() {
    head.msg_control = control;
    head.msg_controllen = sizeof control;
  }
  void enclose(int fd) {
    make_room();
    auto* part = CMSG_FIRSTHDR(&head);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  }
  unique_fd enclosed() const {
    const auto* part = CMSG_FIRSTHDR(&head);
    if (!part || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) return unique_fd();
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
    return unique_fd(fd);
  }
};

}  // namespace

void host_peer::give(const shared_segment& own) {
  std::lock_guard lock(mutex_);
  if (given_.contains(own.id)) return;
  post(segment_given, own.id, own.size_bytes, own.fd.get());
  given_.insert(own.id);
}

void host_peer::forget(const std::vector<std::uint64_t>& ended) {
  std::lock_guard lock(mutex_);
  for (auto id : ended)
    if (given_.erase(id) > 0) post(segment_ended, id, 0, -1);
}

void host_peer::post(std::uint32_t kind, std::uint64_t id, std::uint64_t size_bytes, int fd) {
  packet sent;
  sent.message = {kind, 0, id, size_bytes};
  if (fd >= 0) sent.enclose(fd);
  if (::sendmsg(socket_.get(), &sent.head, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
  if (errno == EPIPE || errno == ECONNRESET) return;  // it has ended, which is noticed elsewhere
  throw system_failure("hand a shared segment to a process that has not taken the ones before", errno);
}

std::shared_ptr<mapping> host_peer::find(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  while (!received_.contains(id))
    if (!take_one()) return nullptr;
  return received_.at(id);
}

void host_peer::take_given() {
  std::lock_guard lock(mutex_);
  while (take_one()) {
  }
}

/// Whether there was one.
bool host_peer::take_one() {
  packet received;
  received.make_room();
  auto size = ::recvmsg(socket_.get(), &received.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size <= 0) return false;
  auto fd = received.enclosed();
  const auto& message = received.message;
  if (size != sizeof message) throw std::runtime_error("[shared segment] got a message of another program");
  if (message.kind == segment_ended)
    received_.erase(message.id);
  else
    received_[message.id] = map_foreign_segment(fd.get(), message.size_bytes);
  return true;
}

}  // namespace troupe
