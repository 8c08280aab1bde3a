#pragma once
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "troupe/error/errors.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::posix {

/// An epoll instance. Closing a socket removes it from the set. For one thread.
class epoll_set {
 public:
  epoll_set()
      : epoll_(static_cast<int>(check_posix(::epoll_create1(EPOLL_CLOEXEC), "make an epoll descriptor"))) {}

  /// Readable when some socket is ready.
  int fd() const { return epoll_.get(); }
  /// `events` as for epoll (EPOLLIN, EPOLLOUT, EPOLLRDHUP). Both throw system_failure.
  void add(int socket, std::uint32_t events) { control(EPOLL_CTL_ADD, socket, events); }
  void change(int socket, std::uint32_t events) { control(EPOLL_CTL_MOD, socket, events); }
  /// Up to 32 ready sockets, without waiting; valid until the next call.
  std::span<const epoll_event> ready() {
    auto count = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
    return std::span(events_).first(static_cast<std::size_t>(std::max(count, 0)));
  }

 private:
  void control(int operation, int socket, std::uint32_t events) {
    epoll_event wanted{};
    wanted.events = events;
    wanted.data.fd = socket;
    check_posix(::epoll_ctl(epoll_.get(), operation, socket, &wanted), "watch a socket");
  }

  unique_fd epoll_;
  std::array<epoll_event, 32> events_;
};

}  // namespace troupe::posix
