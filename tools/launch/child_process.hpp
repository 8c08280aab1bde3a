#pragma once
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// How a process ended.
struct exit_status {
  int code = 0;    ///< of exit(), if `signal` is 0
  int signal = 0;  ///< the signal that killed it; 0: none
  std::chrono::microseconds processor_time{};
  bool success() const { return code == 0 && signal == 0; }
  /// As shells report it: 128 + signal.
  int shell_code() const { return signal ? 128 + signal : code; }
  /// "exit code 3", "killed by SIGKILL", "ended by SIGSEGV (segmentation fault)"
  std::string describe() const;
};

/// Why the kernel killed a process at its limit of processor time (ulimit -t), of which the process sees only
/// SIGKILL; empty if it was not that. `limit`: none is no limit.
std::string explain_processor_time(const exit_status& status, std::optional<std::chrono::seconds> limit);
/// Of the processes that this one starts.
std::optional<std::chrono::seconds> processor_time_limit();

/// "SIGKILL"
std::string signal_name(int number);

/// The file that a shell would run for `name`. Throws bad_input saying what to check.
std::string find_program(const std::string& name);

/// The text for a program that is there, and could not be executed.
std::string why_not_run(const std::string& program, int error_number);

struct child_spec {
  std::string program;                   ///< path of the program
  std::vector<std::string> arguments;    ///< the first is the program's name
  std::vector<std::string> environment;  ///< "NAME=value", all of it
  /// How signals are sent, for tests; empty: kill(2).
  std::function<int(pid_t, int)> send_signal = {};
  int input = -1;      ///< what it reads, open until it has started; -1: nothing
  int inherited = -1;  ///< a descriptor that it gets with the same number; -1: none
};

/// A started program with pipes at its output, in its own process group. It is killed when the thread that
/// started it ends. The destructor kills the rest of the group.
class child_process {
 public:
  /// Throws bad_input if the program cannot be executed.
  explicit child_process(const child_spec& spec);
  child_process(child_process&&) noexcept = default;
  child_process& operator=(child_process&&) = delete;
  ~child_process();

  pid_t pid() const { return pid_; }
  /// Becomes readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }
  posix::unique_fd take_output() { return std::move(output_); }
  posix::unique_fd take_errors() { return std::move(errors_); }
  bool has_ended() const;
  /// By a signal (SIGSTOP, SIGTSTP) or a debugger, and not continued.
  bool is_stopped() const;
  /// Sends a signal to the whole group. Safe at any time: the process id is not reused before reap().
  void signal(int number) const;
  /// Waits for the end, kills the rest of the group, and returns how the process itself ended. Call it once.
  exit_status reap();
  /// Gives up a process that does not end although it was killed: the destructor does not wait for it.
  void abandon();

 private:
  int send(pid_t to, int number) const {
    return send_signal_ ? send_signal_(to, number) : ::kill(to, number);
  }

  pid_t pid_ = -1;
  bool reaped_ = false;
  std::function<int(pid_t, int)> send_signal_;
  posix::unique_fd pidfd_, output_, errors_;
};

}  // namespace troupe
