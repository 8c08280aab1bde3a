#include "bench/benches.hpp"
#include "bench/processes/workers.hpp"
#include "commands.hpp"

namespace troupe {

void add_bench_command(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("bench", "Measure this installation on this machine");
  command->require_subcommand(1);
  bench::add_recovery_bench(*command, exit_code);
  bench::add_pipeline_bench(*command, exit_code);
  bench::add_compute_bench(*command, exit_code);
  bench::add_kernel_bench(*command, exit_code);
  bench::add_ddp_bench(*command, exit_code);
  bench::add_compression_bench(*command, exit_code);
  bench::add_actor_bench(*command, exit_code);
  bench::add_collective_benches(*command, exit_code);
  auto* worker = command->add_subcommand("worker", "A process that another bench measures");
  worker->group("");
  worker->require_subcommand(1);
  bench::add_training_worker(*worker);
  bench::add_compute_worker(*worker);
  bench::add_ddp_worker(*worker);
  bench::add_compression_worker(*worker);
  bench::add_hop_worker(*worker);
  bench::add_probe_worker(*worker);
}

}  // namespace troupe
