#include "run_program.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "troupe/error/errors.hpp"
#include "troupe/usage/usage_problem.hpp"
#include "troupe/usage/version.hpp"

namespace troupe {
namespace {

/// Whether all that was printed has reached standard output; says so if not.
bool results_are_written() {
  errno = 0;
  bool written = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written)
    std::fprintf(stderr, "troupe: cannot write to standard output%s%s\n", errno != 0 ? ": " : "",
                 errno != 0 ? std::strerror(errno) : "");
  return written;
}

}  // namespace

int run_program(CLI::App& app, int argc, char** argv, const int& exit_code) {
  app.set_version_flag("--version", "troupe " + version_text());
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error of who writes
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
    std::fprintf(stderr, "troupe: %s\n", usage_problem(app, problem).c_str());
    return 2;
  } catch (const bad_input& problem) {
    std::fprintf(stderr, "troupe: %s\n", problem.what());
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "troupe: %s\n", failure.what());
    return 1;
  }
  return results_are_written() || exit_code != 0 ? exit_code : 1;
}

}  // namespace troupe
