#include "run_program.hpp"

#include <cstdio>

#include "troupe/error/errors.hpp"
#include "troupe/usage/usage_problem.hpp"
#include "troupe/usage/version.hpp"

namespace troupe {

int run_program(CLI::App& app, int argc, char** argv, const int& exit_code) {
  app.set_version_flag("--version", "troupe " + version_text());
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
  return exit_code;
}

}  // namespace troupe
