// The troupe program of a build without actors.
#include "bench/benches.hpp"
#include "bench/processes/workers.hpp"
#include "run_program.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Troupe without actors: what measures its computing", "troupe"};
  app.require_subcommand(1);
  int exit_code = 0;
  auto* command = app.add_subcommand("bench", "Measure this installation on this machine");
  command->require_subcommand(1);
  troupe::bench::add_compute_bench(*command, exit_code);
  troupe::bench::add_kernel_bench(*command, exit_code);
  auto* worker = command->add_subcommand("worker", "A process that another bench measures");
  worker->group("");
  worker->require_subcommand(1);
  troupe::bench::add_compute_worker(*worker);
  return troupe::run_program(app, argc, argv, exit_code);
}
