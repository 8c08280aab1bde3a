#include "bench/benches.hpp"
#include "commands.hpp"

namespace troupe {

void add_bench_command(CLI::App& app, int& exit_code) {
  auto to = bench::add_bench_commands(app, exit_code);
  bench::add_recovery_bench(to);
  bench::add_pipeline_bench(to);
  bench::add_overlap_bench(to);
  bench::add_placement_bench(to);
  bench::add_compute_bench(to);
  bench::add_kernel_bench(to);
  bench::add_product_bench(to);
  bench::add_ddp_bench(to);
  bench::add_compression_bench(to);
  bench::add_actor_bench(to);
  bench::add_inspector_bench(to);
  bench::add_collective_benches(to);
}

}  // namespace troupe
