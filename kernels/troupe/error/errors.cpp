#include "troupe/error/errors.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "troupe/error/function_name.hpp"

namespace troupe {

void throw_invalid(std::string_view function, std::string_view expected, std::string_view got) {
  throw std::invalid_argument("[" + std::string(function) + "] expected " + std::string(expected) + ", got " +
                              std::string(got));
}

namespace {

/// What to do about it, where there is something.
std::string advice_on(int error_number) {
  rlimit descriptors{};
  if (error_number != EMFILE || ::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return {};
  return ": this process may have " + std::to_string(descriptors.rlim_cur) +
         " descriptors, raise the limit with ulimit -n";
}

}  // namespace

system_failure::system_failure(std::string_view action, int error_number, std::source_location location)
    : std::runtime_error(std::string(action) + ": " + std::strerror(error_number) + advice_on(error_number) +
                         " (in " + short_function_name(location) + ")"),
      error_number_(error_number) {}

long check_posix(long result, std::string_view action, std::source_location location) {
  if (result < 0) throw system_failure(action, errno, location);
  return result;
}

}  // namespace troupe
