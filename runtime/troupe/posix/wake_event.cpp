#include "troupe/posix/wake_event.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "troupe/error/errors.hpp"

namespace troupe::posix {

wake_event::wake_event()
    : fd_(static_cast<int>(check_posix(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "make an eventfd"))) {}

void wake_event::set(int fd) {
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(fd, &one, sizeof one);
}

void wake_event::clear() {
  std::uint64_t count;
  [[maybe_unused]] auto read = ::read(fd_.get(), &count, sizeof count);
}

}  // namespace troupe::posix
