#include "bench/benches.hpp"
#include "commands.hpp"

namespace troupe {

void add_bench_command(CLI::App& app, int& exit_code) {
  auto [benches, workers] = bench::add_bench_commands(app);
  bench::add_recovery_bench(benches, exit_code);
  bench::add_pipeline_bench(benches, exit_code);
  bench::add_compute_bench(benches);
  bench::add_kernel_bench(benches);
  bench::add_ddp_bench(benches);
  bench::add_compression_bench(benches);
  bench::add_actor_bench(benches);
  bench::add_collective_benches(benches);
  bench::add_training_worker(workers);
  bench::add_compute_worker(workers);
  bench::add_ddp_worker(workers);
  bench::add_compression_worker(workers);
  bench::add_hop_worker(workers);
  bench::add_probe_worker(workers);
}

}  // namespace troupe
