#include "inspect/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

constexpr std::array handled = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (auto number : handled) sigaddset(&set, number);
  return set;
}

/// A terminal that is gone cannot be written to; the signal that says so follows.
void write_all(std::string_view text) {
  while (!text.empty()) {
    auto count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

const char* code_of(row_style style) {
  switch (style) {
    case row_style::plain:
      return "\x1b[0m";
    case row_style::heading:
      return "\x1b[0;1m";
    case row_style::selected:
      return "\x1b[0;7m";
    case row_style::bad:
      return "\x1b[0;31m";
    case row_style::faint:
      return "\x1b[0;2m";
  }
  return "";
}

}  // namespace

bool is_on_terminal() { return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0; }

terminal::terminal() {
  if (!is_on_terminal())
    throw bad_input(
        "troupe inspect: expected a terminal as standard input and output; without one use --once, "
        "--json, --diagnose or --record FILE");
  if (::tcgetattr(STDIN_FILENO, &before_) != 0) throw system_failure("read the terminal's settings", errno);
  auto set = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
  signals_ = posix::unique_fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (signals_.get() < 0) {
    auto problem = errno;
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    throw system_failure("make a signalfd", problem);
  }
  enter();
}

terminal::~terminal() {
  leave();
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void terminal::enter() {
  auto raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  write_all("\x1b[?1049h\x1b[?25l");  // the alternate screen, no cursor
  is_entered_ = true;
}

void terminal::leave() {
  if (!is_entered_) return;
  is_entered_ = false;
  write_all("\x1b[0m\x1b[?25h\x1b[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

screen_size terminal::size() const {
  winsize now{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) != 0 || now.ws_row == 0 || now.ws_col == 0) return {};
  return {now.ws_row, now.ws_col};
}

void terminal::show(const screen& rows) {
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += code_of(rows[i].style) + rows[i].text + "\x1b[0m\x1b[K";
    if (i + 1 < rows.size()) text += "\r\n";
  }
  write_all(text + "\x1b[J");
}

terminal_input terminal::wait(int woken_by, std::chrono::milliseconds at_most) {
  std::array<pollfd, 3> sources = {
      {{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}, {woken_by, POLLIN, 0}}};
  // An escape alone is told from the beginning of a sequence by the time after it.
  auto limit = bytes_.empty() ? at_most : std::min(at_most, std::chrono::milliseconds(50));
  auto num_ready = ::poll(sources.data(), sources.size(), static_cast<int>(limit.count()));
  terminal_input input;
  if ((sources[0].revents & (POLLIN | POLLHUP)) != 0) {
    std::array<char, 256> read{};
    auto count = ::read(STDIN_FILENO, read.data(), read.size());
    if (count > 0) bytes_.append(read.data(), static_cast<std::size_t>(count));
    if (count == 0 && (sources[0].revents & POLLHUP) != 0) input.signal = SIGHUP;
  }
  input.keys = take_keys(bytes_, num_ready == 0);
  if (sources[1].revents != 0) read_signals(input);
  input.was_woken = woken_by >= 0 && sources[2].revents != 0;
  return input;
}

void terminal::read_signals(terminal_input& into) {
  signalfd_siginfo told{};
  while (::read(signals_.get(), &told, sizeof told) == sizeof told) {
    auto number = static_cast<int>(told.ssi_signo);
    if (number == SIGWINCH)
      into.was_resized = true;
    else if (number == SIGTSTP)
      suspend();
    else
      into.signal = number;
  }
}

void terminal::suspend() {
  leave();
  ::kill(::getpid(), SIGSTOP);
  enter();
}

}  // namespace troupe
