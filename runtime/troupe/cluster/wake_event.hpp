#pragma once
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "troupe/error/errors.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// Wakes a thread that polls fd(). Thread-safe.
class wake_event {
 public:
  wake_event()
      : fd_(static_cast<int>(check_posix(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "make an eventfd"))) {}
  int fd() const { return fd_.get(); }
  void set() {
    std::uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(fd_.get(), &one, sizeof one);
  }
  void clear() {
    std::uint64_t count;
    [[maybe_unused]] auto read = ::read(fd_.get(), &count, sizeof count);
  }

 private:
  unique_fd fd_;
};

}  // namespace troupe
