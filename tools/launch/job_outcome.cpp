#include "job_outcome.hpp"

#include <csignal>

namespace troupe {

void job_outcome::note_exit_code(int exit_code) {
  if (!exit_code_) exit_code_ = exit_code;
}

void job_outcome::fail(const std::string& line, int exit_code) {
  note_exit_code(exit_code);
  set_failed(line);
}

void job_outcome::fail(const std::string& line, failure_kind kind) {
  if (kind == failure_kind::bad_input) note_exit_code(bad_input_exit_code);
  set_failed(line);
}

void job_outcome::set_failed(const std::string& line) {
  failed_ = true;
  last_line_ = line;
}

void job_outcome::stop(int signal, const std::string& what, bool never_began) {
  stop_signal_ = signal;
  stop_line_ = "stopped by " + signal_name(signal) + " " + what;
  if (never_began) return;
  note_exit_code(128 + signal);
  last_line_ = stop_line_;
}

/// Also by SIGKILL: whoever ends a job often kills its processes too, and the order in which they end is
/// chance.
bool job_outcome::ended_by_stop(const exit_status& status) const {
  return stop_signal_ && (status.signal == SIGKILL || status.shell_code() == 128 + stop_signal_);
}

void job_outcome::process_ended(const exit_status& status, ended_by whom) {
  bool is_cause = whom == ended_by::itself && !stop_signal_ && status.code == bad_input_exit_code;
  if (status.success() || (exit_code_ && !is_cause)) return;
  if (failed_ && whom == ended_by::us && status.signal) return;
  bool was_stopped = ended_by_stop(status);
  exit_code_ = was_stopped ? 128 + stop_signal_ : status.shell_code();
  if (was_stopped) last_line_ = stop_line_;
}

void job_outcome::abandon() {
  if (!failed_) note_exit_code(1);
}

int job_outcome::exit_code() const { return exit_code_.value_or(failed_ ? 1 : 0); }

}  // namespace troupe
