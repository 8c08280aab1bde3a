#pragma once
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
