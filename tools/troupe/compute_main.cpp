// The troupe program of a build without actors.
#include "bench/benches.hpp"
#include "run_program.hpp"

// NOLINTNEXTLINE(bugprone-exception-escape): CLI11 throws here only if an option is defined wrongly
int main(int argc, char** argv) {
  CLI::App app{"Troupe without actors: what measures its computing", "troupe"};
  app.require_subcommand(1);
  const int exit_code = 0;  // no bench here stores one
  auto [benches, workers] = troupe::bench::add_bench_commands(app);
  troupe::bench::add_compute_bench(benches);
  troupe::bench::add_kernel_bench(benches);
  troupe::bench::add_compute_worker(workers);
  return troupe::run_program(app, argc, argv, exit_code);
}
