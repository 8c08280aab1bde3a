#include "troupe/transport/wakeup.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "troupe/error/errors.hpp"

namespace troupe {

wakeup::wakeup()
    : event_fd_(static_cast<int>(check_posix(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "make an eventfd"))) {}

wakeup::~wakeup() { ::close(event_fd_); }

void wakeup::sleep(std::array<int, 2> descriptors, std::chrono::milliseconds at_most) {
  std::array<pollfd, 3> waited = {pollfd{event_fd_, POLLIN, 0}, pollfd{descriptors[0], POLLIN, 0},
                                  pollfd{descriptors[1], POLLIN, 0}};
  ::poll(waited.data(), waited.size(),
         static_cast<int>(at_most.count()));  // interrupted: the caller looks again
  sleeping_ = false;
  std::uint64_t count = 0;
  if ((waited[0].revents & POLLIN) != 0) [[maybe_unused]]
    auto ignored = ::read(event_fd_, &count, sizeof(count));
}

void wakeup::wake() {
  if (!sleeping_.exchange(false)) return;
  std::uint64_t one = 1;
  [[maybe_unused]] auto ignored = ::write(event_fd_, &one, sizeof(one));
}

}  // namespace troupe
