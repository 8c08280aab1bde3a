#include "run_program.hpp"

#include <csignal>
#include <cstdio>

#include "troupe/config/stop_signals.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_errors.hpp"
#include "troupe/usage/output_problem.hpp"
#include "troupe/usage/parse_command_line.hpp"
#include "troupe/usage/usage_problem.hpp"
#include "troupe/usage/version.hpp"

namespace troupe {
int run_program(CLI::App& app, int argc, char** argv, const int& exit_code) {
  app.set_version_flag("--version", "troupe " + usage::version_text());
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of file sizes fails with an error instead
  config::unblock_stop_signals();
  try {
    usage::parse_command_line(app, argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
    std::fprintf(stderr, "troupe: %s\n", usage::usage_problem(app, problem).c_str());
    return 2;
  } catch (const bad_input& problem) {
    std::fprintf(stderr, "troupe: %s\n", problem.what());
    return 2;
  } catch (const job_stopped& stopped) {
    std::fprintf(stderr, "troupe: %s\n", stopped.what());
    return 128 + stopped.signal();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "troupe: %s\n", failure.what());
    return 1;
  }
  auto problem = usage::output_problem();
  if (!problem.empty()) std::fprintf(stderr, "troupe: %s\n", problem.c_str());
  return problem.empty() || exit_code != 0 ? exit_code : 1;
}

}  // namespace troupe
