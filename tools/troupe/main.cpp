#include <cstdio>

#include "commands.hpp"
#include "troupe/error/errors.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Troupe: an actor runtime for distributed deep learning", "troupe"};
  app.require_subcommand(1);
  int exit_code = 0;
  troupe::add_launch_command(app, exit_code);
  troupe::add_schedule_command(app, exit_code);
  troupe::add_snapshot_command(app, exit_code);
  troupe::add_doctor_command(app, exit_code);
  troupe::add_bench_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const troupe::bad_input& problem) {
    std::fprintf(stderr, "troupe: %s\n", problem.what());
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "troupe: %s\n", failure.what());
    return 1;
  }
  return exit_code;
}
