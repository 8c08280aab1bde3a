#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace troupe {

/// Of a failure that a process reports to its job. It decides the exit code of the job, however its processes
/// end afterwards.
enum class failure_kind : std::uint8_t {
  error = 1,
  bad_input = 2  ///< what the user gave cannot be used: exit code 2, and a restart does not help
};

/// The job has failed in all its processes; the message says why and, if possible, what to do.
class job_failed : public std::runtime_error {
 public:
  explicit job_failed(const std::string& cause, failure_kind kind = failure_kind::error)
      : std::runtime_error(cause), kind_(kind) {}
  /// bad_input: a bad_input in an actor ended the job, such as one of a data set or a layer.
  failure_kind kind() const { return kind_; }

 private:
  failure_kind kind_;
};

}  // namespace troupe
