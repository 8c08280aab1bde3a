#pragma once
#include <termios.h>
#include <csignal>

#include <chrono>
#include <string>
#include <vector>

#include "inspect/keys.hpp"
#include "inspect/screen/screen.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// What a terminal's user, or the system, did.
struct terminal_input {
  std::vector<key> keys;
  bool was_resized = false;
  bool was_woken = false;  ///< the descriptor given to wait() is readable
  int signal = 0;          ///< SIGINT, SIGTERM or SIGHUP: the program is to end; 0: none
};

/// Whether standard input and output are one.
bool is_on_terminal();

/// The terminal of this process as a whole screen. Whatever ends its life, the terminal is as it was before:
/// the constructor blocks the signals that would end the process, and wait() tells of them. Construct it
/// before any thread begins, so that threads inherit that. SIGTSTP suspends the process as usual.
class terminal {
 public:
  /// Throws bad_input if standard input or output is no terminal.
  terminal();
  ~terminal();
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;

  screen_size size() const;
  /// Shows this in place of what was shown.
  void show(const screen& rows);
  /// Returns when there is something, or after `at_most`.
  terminal_input wait(int woken_by, std::chrono::milliseconds at_most);

 private:
  void enter();
  void leave();
  void suspend();
  void read_signals(terminal_input& into);

  termios before_{};
  sigset_t mask_before_{};
  posix::unique_fd signals_;
  std::string bytes_;  ///< of a key that has not come whole
  bool is_entered_ = false;
};

}  // namespace troupe
