#include "run_program.hpp"

#include <cstdio>

#include "troupe/error/errors.hpp"

namespace troupe {

int run_program(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
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
