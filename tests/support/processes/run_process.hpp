#pragma once
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

/// A program to run, with empty standard input.
struct run_options {
  std::vector<std::string> command;                ///< program (a path, or a name in PATH) and arguments
  std::map<std::string, std::string> environment;  ///< added to, or replacing, this process's own
  std::vector<std::string> without;                ///< names of variables that it does not inherit
  /// After this time its whole process group is killed and the test fails. Four times as long with a
  /// sanitizer.
  std::chrono::milliseconds deadline = std::chrono::seconds(180);
};

struct process_result {
  int exit_code = -1;  ///< -1 if a signal ended it
  int signal = 0;
  std::string output;
  std::string errors;
};

/// Runs the program to its end.
process_result run_process(const run_options& options);
/// Runs a line of a shell to its end.
process_result run_in_shell(const std::string& line);

/// A program that runs concurrently with the test, in its own process group. The destructor kills the group.
class background_process {
 public:
  explicit background_process(const run_options& options);
  background_process(const background_process&) = delete;
  background_process& operator=(const background_process&) = delete;
  ~background_process();

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Reads on until a line of output or errors contains `text`, and returns the first such line not returned
  /// before. Fails the test at the deadline, and if the program ends without such a line.
  std::string wait_for_line(const std::string& text);
  /// Waits for its end.
  process_result wait();

 private:
  struct stream {
    int fd = -1;
    std::string text;
    std::size_t searched = 0;  ///< lines before this were looked at for wait_for_line
  };
  bool read_more();
  static void read_some(stream& from);
  static std::optional<std::string> next_line(stream& in, const std::string& text);
  [[noreturn]] void give_up(const std::string& why);

  std::string name_;
  std::chrono::steady_clock::time_point deadline_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  stream out_, err_;
};

}  // namespace troupe::testing
