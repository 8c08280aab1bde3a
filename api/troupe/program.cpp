#include "troupe/program.hpp"

#include <cstdio>

#include "troupe/config/command_line.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

int run_program(int argc, char** argv, job_options options,
                const std::function<void(const job_options&)>& body,
                const std::vector<program_option>& own_options) {
  CLI::App app;
  try {
    add_job_options(app, options);
    for (const auto& each : own_options)
      app.add_option(each.name, *each.value, each.description)->capture_default_str();
    app.parse(argc, argv);
    body(options);
    return 0;
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const bad_input& problem) {
    std::fprintf(stderr, "%s: %s\n", argv[0], problem.what());
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
    return 1;
  }
}

}  // namespace troupe
