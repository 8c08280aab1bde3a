#include "bench/processes/run_captured.hpp"

#include <poll.h>
#include <unistd.h>

#include "child_process.hpp"

namespace troupe::bench {
namespace {

/// Returns whether there may be more.
bool read_some(int fd, std::string& text) {
  char piece[4096];
  auto got = ::read(fd, piece, sizeof piece);
  if (got <= 0) return false;
  text.append(piece, static_cast<std::size_t>(got));
  return true;
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  auto made = more;
  for (char** entry = environ; *entry; ++entry) made.emplace_back(*entry);
  return made;
}

captured run_captured(const std::vector<std::string>& command,
                      const std::vector<std::string>& more_environment) {
  child_process child({find_program(command.front()), command, environment_with(more_environment)});
  auto output = child.take_output(), errors = child.take_errors();
  captured seen;
  pollfd polled[2] = {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (::poll(polled, 2, -1) < 0) continue;
    if (polled[0].revents && !read_some(output.get(), seen.output)) polled[0].fd = -1;
    if (polled[1].revents && !read_some(errors.get(), seen.errors)) polled[1].fd = -1;
  }
  seen.exit_code = child.reap().shell_code();
  return seen;
}

}  // namespace troupe::bench
