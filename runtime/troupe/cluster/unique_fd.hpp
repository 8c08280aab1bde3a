#pragma once
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {

/// Owns a file descriptor and closes it.
class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_fd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

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
