#include "troupe/collective/shm/memory/peer_process.hpp"

#include <sys/socket.h>
#include <cerrno>

#include <cstring>
#include <vector>

#include "troupe/error/errors.hpp"

namespace troupe::collective {
namespace {

enum : std::uint32_t { segment_sent, segment_released };

struct segment_message {
  std::uint32_t kind = segment_sent;
  std::uint32_t unused = 0;
  std::uint64_t id = 0;
  std::uint64_t size_bytes = 0;
};

/// The parts of a sendmsg or recvmsg with room for descriptors.
struct packet {
  iovec bytes;
  alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))] = {};
  msghdr head{};

  packet(void* first, std::size_t size_bytes) : bytes{first, size_bytes} {
    head.msg_iov = &bytes;
    head.msg_iovlen = 1;
  }
  packet(const packet&) = delete;
  packet& operator=(const packet&) = delete;

  void reserve_descriptors() {
    head.msg_control = control;
    head.msg_controllen = sizeof control;
  }
  void attach(std::span<const int> descriptors) {
    head.msg_control = control;
    head.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    auto* part = CMSG_FIRSTHDR(&head);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
  }
  std::array<posix::unique_fd, most_descriptors> attached() const {
    std::array<posix::unique_fd, most_descriptors> all;
    const auto* part = CMSG_FIRSTHDR(&head);
    if (!part || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) return all;
    auto count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count && i < all.size(); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      all[i] = posix::unique_fd(fd);
    }
    return all;
  }
};

}  // namespace

ssize_t send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  packet sent(const_cast<std::byte*>(bytes.data()), bytes.size());  // sendmsg only reads it
  if (!descriptors.empty()) sent.attach(descriptors);
  return ::sendmsg(socket, &sent.head, MSG_DONTWAIT | MSG_NOSIGNAL);
}

received_packet receive_packet(int socket, std::span<std::byte> into) {
  packet received(into.data(), into.size());
  received.reserve_descriptors();
  auto receive = [&] { return ::recvmsg(socket, &received.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC); };
  auto size = receive();
  // Said once, before the packets that came earlier, if the other process ended without reading all of its
  // own.
  if (size < 0 && errno == ECONNRESET) size = receive();
  if (size <= 0) return {size, {}};
  return {size, received.attached(), (received.head.msg_flags & MSG_CTRUNC) != 0};
}

void peer_process::send_segment(const shared_memory::shared_segment& own) {
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
  segment_message message{kind, 0, id, size_bytes};
  auto descriptors = std::span(&fd, fd >= 0 ? 1 : 0);
  if (send_packet(socket_.get(), std::as_bytes(std::span(&message, 1)), descriptors) >= 0) return;
  if (errno == EPIPE || errno == ECONNRESET) return;  // it has ended, which peer_connector notices
  throw system_failure("send a shared segment to a process that has not received the ones before", errno);
}

std::shared_ptr<shared_memory::mapping> peer_process::find_segment(std::uint64_t id) {
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
  segment_message message;
  auto received = receive_packet(socket_.get(), std::as_writable_bytes(std::span(&message, 1)));
  if (received.size_bytes <= 0) return false;
  if (received.size_bytes != sizeof message)
    throw std::runtime_error("[shared segment] got a message of another program");
  if (received.lacks_descriptors) throw system_failure("receive a shared segment", EMFILE);
  if (message.kind == segment_released)
    received_.erase(message.id);
  else
    received_[message.id] =
        shared_memory::map_received_segment(received.descriptors[0].get(), message.size_bytes);
  return true;
}

}  // namespace troupe::collective
