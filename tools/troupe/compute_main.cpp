// The troupe program of a build without actors.
#include <memory>

#include "bench/benches.hpp"
#include "run_program.hpp"
#include "troupe/usage/help_formatter.hpp"

// NOLINTNEXTLINE(bugprone-exception-escape): CLI11 throws here only if an option is defined wrongly
int main(int argc, char** argv) {
  CLI::App app{"Troupe without actors: benches of its kernels and models", "troupe"};
  app.formatter(std::make_shared<troupe::usage::help_formatter>());
  app.require_subcommand(1);
  int exit_code = 0;
  auto to = troupe::bench::add_bench_commands(app, exit_code);
  troupe::bench::add_compute_bench(to);
  troupe::bench::add_kernel_bench(to);
  troupe::bench::add_product_bench(to);
  return troupe::run_program(app, argc, argv, exit_code);
}
