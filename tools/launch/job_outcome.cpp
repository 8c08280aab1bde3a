#include "job_outcome.hpp"

namespace troupe {

void job_outcome::note_exit_code(int exit_code) {
  if (!exit_code_) exit_code_ = exit_code;
}

void job_outcome::fail(const std::string& line, int exit_code) {
  note_exit_code(exit_code);
  fail(line);
}

void job_outcome::fail(const std::string& line) {
  failed_ = true;
  last_line_ = line;
}

void job_outcome::stop(int signal, const std::string& what, bool never_began) {
  stopped_ = true;
  if (never_began) return;
  note_exit_code(128 + signal);
  last_line_ = "stopped by " + signal_name(signal) + " " + what;
}

void job_outcome::process_ended(const exit_status& status, ended_by whom) {
  bool is_cause = whom == ended_by::itself && !stopped_ && status.code == bad_input_exit_code;
  if (status.success() || (exit_code_ && !is_cause)) return;
  if (failed_ && whom == ended_by::us && status.signal) return;
  exit_code_ = status.shell_code();
}

void job_outcome::abandon() {
  if (!failed_) note_exit_code(1);
}

int job_outcome::exit_code() const { return exit_code_.value_or(failed_ ? 1 : 0); }

}  // namespace troupe
