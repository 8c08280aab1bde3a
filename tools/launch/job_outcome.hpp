#pragma once
#include <optional>
#include <string>

#include "child_process.hpp"

namespace troupe {

/// A process that ends with this code would not do better the next time (bad_input).
constexpr int hopeless_exit_code = 2;

/// What a job comes to: the launcher's exit code and its last line. The first failure decides both.
class job_outcome {
 public:
  /// Who ends a process that ends while the job does.
  enum class ended_by { itself, us };

  /// A process's own exit code, where its end is no failure of the job.
  void note_exit_code(int exit_code);
  /// The launcher's own end of the job, because of what `line` says.
  void fail(const std::string& line, int exit_code);
  /// The agent has ended the job; its processes' exit codes follow.
  void fail(const std::string& line);
  /// The job was asked to stop, and has. One that `never_began` ends as its processes do.
  void stop(int signal, const std::string& what, bool never_began);
  /// A process has ended after the job had: one that knows of bad input is the cause of a failed job, if it
  /// ended by itself.
  void process_ended(const exit_status& status, ended_by whom);
  /// A process was given up, and will not say how it ended.
  void leave_behind();

  int exit_code() const;
  const std::string& last_line() const { return last_line_; }  ///< empty if nothing went wrong

 private:
  std::optional<int> exit_code_;
  bool failed_ = false;
  bool stopped_ = false;
  std::string last_line_;
};

}  // namespace troupe
