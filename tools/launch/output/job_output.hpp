#pragma once
#include <cstdint>
#include <list>

#include "launcher.hpp"
#include "output/output_lines.hpp"
#include "poll_round.hpp"

namespace troupe {

/// Forwards the output of a job's processes, and messages of the launcher, line by line: to the launcher's
/// output and errors, and to log files.
class job_output {
 public:
  explicit job_output(const launch_options& options);

  /// Adds the output of one process. Throws bad_input if its log file cannot be made.
  void add(int rank, std::uint32_t incarnation, posix::unique_fd output, posix::unique_fd errors);
  /// Prints a message of the launcher.
  void say(const std::string& line);
  /// Prints a line of the result (JSON).
  void add_result(const std::string& line);

  void watch(poll_round& round);
  void drop_ended();
  /// Reads what the processes wrote before they ended.
  void read_rest();
  /// Writes everything, unless its readers take too long.
  void flush();
  /// What the output adds to the outcome of the job:
  /// - 0 if all of it was written
  /// - 128 + SIGPIPE if its reader has closed its end, as of a program that the signal ends
  /// - 1 if results are missing for another reason
  int exit_code() const;

 private:
  void add(int rank, posix::unique_fd source, bool is_errors, log_file log);
  log_file open_log(const std::string& name, std::uint32_t incarnation);
  void warn_of_lost_output();

  bool json_;
  std::filesystem::path log_dir_;
  line_sink out_, err_;
  repeated_lines said_;  ///< the program's final error messages
  std::list<line_splitter> splitters_;
  bool has_warned_of_output_ = false;
};

}  // namespace troupe
