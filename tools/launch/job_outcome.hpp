#pragma once
#include <optional>
#include <string>

#include "child_process.hpp"
#include "troupe/job_error/job_errors.hpp"

namespace troupe {

/// The exit code of bad input: a restart does not help.
constexpr int bad_input_exit_code = 2;

/// The outcome of a job: the launcher's exit code and its last line. The first failure decides both.
class job_outcome {
 public:
  /// Whether a process that ends during the shutdown of the job ended by itself or was signalled by the
  /// launcher.
  enum class ended_by { itself, us };

  /// Records the exit code of a process whose end is no failure of the job.
  void note_exit_code(int exit_code);
  /// The launcher ends the job for the reason in `line`.
  void fail(const std::string& line, int exit_code);
  /// The agent has failed the job. For bad_input that decides the exit code: its processes may be ended by a
  /// signal before they come to theirs. Else the processes' exit codes follow.
  void fail(const std::string& line, failure_kind kind);
  /// The job has stopped on request. If it `never_began` (no view), its processes' exit codes decide; one
  /// that SIGKILL or this signal ended counts as stopped.
  void stop(int signal, const std::string& what, bool never_began);
  /// A process has ended after the job. If it ended by itself with bad_input_exit_code, it is the cause of a
  /// failed job.
  void process_ended(const exit_status& status, ended_by whom);
  /// A process that cannot be killed was abandoned; its exit code is unknown.
  void abandon();

  int exit_code() const;
  const std::string& last_line() const { return last_line_; }  ///< empty if nothing went wrong

 private:
  void set_failed(const std::string& line);
  bool ended_by_stop(const exit_status& status) const;

  std::optional<int> exit_code_;
  bool failed_ = false;
  int stop_signal_ = 0;    ///< that stopped the job; 0: none
  std::string stop_line_;  ///< last line of a stopped job
  std::string last_line_;
};

}  // namespace troupe
