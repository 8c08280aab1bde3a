#pragma once
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace troupe {

/// Throws std::invalid_argument("[where] expected X, got Y"): a broken precondition in the caller's code.
[[noreturn]] void throw_invalid(std::string_view function, std::string_view expected, std::string_view got);

/// Invalid user input: an option, file, folder or address that cannot be used. The message says what was
/// expected, what was found and what to do. Programs exit with code 2, which tells `troupe launch` that a
/// restart would not help.
class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

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

/// A failed system call: what() names the call, the object and strerror(errno).
class system_failure : public std::runtime_error {
 public:
  system_failure(std::string_view action, int error_number,
                 std::source_location location = std::source_location::current());
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

/// Returns `result` of a POSIX call, or throws system_failure with errno if it is negative. `action`
/// describes the call, for example "open /tmp/x".
long check_posix(long result, std::string_view action,
                 std::source_location location = std::source_location::current());

}  // namespace troupe
