#include "troupe/signals/signal_pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "troupe/error/errors.hpp"
#include "troupe/ucx/ucx_library.hpp"

namespace troupe::signals {
namespace {

/// The pipe's write end; global, since a signal handler has no other access to it.
std::atomic<int> handler_fd = -1;

void write_down(int number) {
  auto before = errno;
  auto byte = static_cast<unsigned char>(number);
  [[maybe_unused]] auto wrote = ::write(handler_fd, &byte, 1);
  errno = before;
}

}  // namespace

signal_pipe::signal_pipe(const config::stop_signals& more) {
  int ends[2];
  check_posix(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), "make a pipe");
  read_ = posix::unique_fd(ends[0]);
  write_ = posix::unique_fd(ends[1]);
  handler_fd = ends[1];
  ucx::restore_debug_signal();
  struct sigaction action {};
  action.sa_handler = write_down;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  config::unblock_stop_signals(more);
  config::stop_signals numbers{SIGINT, SIGTERM, SIGHUP};
  numbers.insert(more.begin(), more.end());
  for (int number : numbers) {
    auto& before = before_[number];
    ::sigaction(number, nullptr, &before);
    bool is_ignored = !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_IGN;
    if (!is_ignored) ::sigaction(number, &action, nullptr);
  }
}

signal_pipe::~signal_pipe() {
  for (const auto& [number, before] : before_) ::sigaction(number, &before, nullptr);
  handler_fd = -1;
}

std::optional<int> signal_pipe::next() {
  unsigned char byte = 0;
  if (::read(fd(), &byte, 1) != 1) return {};
  return byte;
}

}  // namespace troupe::signals
