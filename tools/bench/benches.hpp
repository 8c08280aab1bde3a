#pragma once

namespace CLI {
class App;
}

namespace troupe::bench {

/// Each adds its subcommand to `troupe bench`. With `exit_code`, the subcommand stores the program's there.
void add_recovery_bench(CLI::App& app, int& exit_code);
void add_pipeline_bench(CLI::App& app, int& exit_code);
void add_compute_bench(CLI::App& app);
void add_kernel_bench(CLI::App& app);
void add_ddp_bench(CLI::App& app);
void add_compression_bench(CLI::App& app);
void add_actor_bench(CLI::App& app);
/// all_reduce, all_gather, reduce_scatter and p2p.
void add_collective_benches(CLI::App& app);

/// The processes that they measure, `troupe bench worker train|compute|ddp|compression|hop|probe`, which
/// print JSON objects on rank 0.
void add_training_worker(CLI::App& workers);
void add_compute_worker(CLI::App& workers);
void add_ddp_worker(CLI::App& workers);
void add_compression_worker(CLI::App& workers);
void add_hop_worker(CLI::App& workers);
void add_probe_worker(CLI::App& workers);

/// Adds `bench` with its hidden subcommand `worker`, and returns both.
struct bench_commands {
  CLI::App& bench;
  CLI::App& workers;
};
bench_commands add_bench_commands(CLI::App& app);

}  // namespace troupe::bench
