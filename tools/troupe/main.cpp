#include <memory>

#include "commands.hpp"
#include "run_program.hpp"
#include "troupe/usage/help_formatter.hpp"

// NOLINTNEXTLINE(bugprone-exception-escape): CLI11 throws here only if an option is defined wrongly
int main(int argc, char** argv) {
  CLI::App app{"Troupe: an actor runtime for distributed deep learning", "troupe"};
  app.formatter(std::make_shared<troupe::usage::help_formatter>());
  app.require_subcommand(1);
  int exit_code = 0;
  troupe::add_launch_command(app, exit_code);
  troupe::add_schedule_command(app, exit_code);
  troupe::add_plan_command(app, exit_code);
  troupe::add_snapshot_command(app, exit_code);
  troupe::add_events_command(app, exit_code);
  troupe::add_inspect_command(app, exit_code);
  troupe::add_doctor_command(app, exit_code);
  troupe::add_bench_command(app, exit_code);
  return troupe::run_program(app, argc, argv, exit_code);
}
