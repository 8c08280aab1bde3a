#pragma once
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace troupe {

/// Throws std::invalid_argument("[where] expected X, got Y"): a broken precondition in the caller's code.
[[noreturn]] void throw_invalid(std::string_view where, std::string_view expected, std::string_view got);

/// Something the user typed or provided (an option, a file, a folder, an address) that cannot be used.
/// The message says what was expected, what came and what to do. Programs end with exit code 2, which
/// tells `troupe launch` that starting the process again would not help.
class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The job has ended for all its processes: the message says why, and what to do where there is something to
/// do.
class job_failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The operating system refused: `what` names the call, the object and strerror(errno).
class system_failure : public std::runtime_error {
 public:
  system_failure(std::string_view action, int error_number,
                 std::source_location where = std::source_location::current());
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

/// Returns `result` of a POSIX call, or throws system_failure with errno if it is negative.
/// `action` is what was tried, for example "open /tmp/x".
long check_posix(long result, std::string_view action,
                 std::source_location where = std::source_location::current());

}  // namespace troupe
