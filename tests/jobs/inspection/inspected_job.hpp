#pragma once
#include <string>
#include <vector>

#include "support/processes/run_process.hpp"

namespace troupe::testing {

/// A job with --inspect that runs beside the test, and `troupe inspect` of it.
class inspected_job {
 public:
  /// Returns when the inspector's address is known. `command`: with --inspect.
  explicit inspected_job(std::vector<std::string> command);

  const std::string& url() const { return url_; }
  background_process& process() { return process_; }
  /// `troupe inspect URL` with these options.
  process_result inspect(std::vector<std::string> options) const;
  /// The process id of a rank.
  int pid_of(int rank) const;

 private:
  background_process process_;
  std::string url_;
};

}  // namespace troupe::testing
