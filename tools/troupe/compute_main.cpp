// The troupe program of a build without actors.
#include "bench/benches.hpp"
#include "run_program.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Troupe without actors: benches of its kernels and models", "troupe"};
  app.require_subcommand(1);
  const int exit_code = 0;  // no bench here stores one
  auto [benches, workers] = troupe::bench::add_bench_commands(app);
  troupe::bench::add_compute_bench(benches);
  troupe::bench::add_kernel_bench(benches);
  troupe::bench::add_compute_worker(workers);
  return troupe::run_program(app, argc, argv, exit_code);
}
