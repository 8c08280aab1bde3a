#include "signal_guard.hpp"

#include <sys/signalfd.h>

#include <csignal>

#include "adopted_processes.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ucx/ucx_library.hpp"

namespace troupe {
namespace {

bool is_ignored(int number) {
  struct sigaction present {};
  ::sigaction(number, nullptr, &present);
  return !(present.sa_flags & SA_SIGINFO) && present.sa_handler == SIG_IGN;
}

/// Without the ignored ones: the kernel would queue these too once they are blocked.
sigset_t taken_signals(const config::stop_signals& more) {
  ucx::restore_debug_signal();
  sigset_t set;
  ::sigemptyset(&set);
  config::stop_signals numbers{SIGINT, SIGTERM, SIGHUP, SIGCONT};
  numbers.insert(more.begin(), more.end());
  for (int number : numbers)
    if (!is_ignored(number)) ::sigaddset(&set, number);
  if (adopts_processes()) ::sigaddset(&set, SIGCHLD);
  return set;
}

}  // namespace

signal_guard::signal_guard(const config::stop_signals& more) {
  auto set = taken_signals(more);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  sigpipe_before_ = ::signal(SIGPIPE, SIG_IGN);
  fd_ = posix::unique_fd(
      static_cast<int>(check_posix(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "make a signalfd")));
}

signal_guard::~signal_guard() {
  ::signal(SIGPIPE, sigpipe_before_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> signal_guard::next() {
  signalfd_siginfo about;
  if (::read(fd(), &about, sizeof about) != sizeof about) return {};
  return static_cast<int>(about.ssi_signo);
}

}  // namespace troupe
