#include "troupe/error/errors.hpp"

#include <cerrno>
#include <cstring>

namespace troupe {

void throw_invalid(std::string_view function, std::string_view expected, std::string_view got) {
  throw std::invalid_argument("[" + std::string(function) + "] expected " + std::string(expected) + ", got " +
                              std::string(got));
}

system_failure::system_failure(std::string_view action, int error_number, std::source_location location)
    : std::runtime_error(std::string(action) + ": " + std::strerror(error_number) + " (" +
                         location.function_name() + ")"),
      error_number_(error_number) {}

long check_posix(long result, std::string_view action, std::source_location location) {
  if (result < 0) throw system_failure(action, errno, location);
  return result;
}

}  // namespace troupe
