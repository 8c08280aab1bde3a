#pragma once
#include <CLI/CLI.hpp>

namespace troupe::bench {

/// Each adds its subcommand to `troupe bench`. The subcommand's callback stores the program's exit code.
void add_recovery_bench(CLI::App& app, int& exit_code);
void add_pipeline_bench(CLI::App& app, int& exit_code);
void add_compute_bench(CLI::App& app, int& exit_code);
void add_kernel_bench(CLI::App& app, int& exit_code);
void add_ddp_bench(CLI::App& app, int& exit_code);
void add_compression_bench(CLI::App& app, int& exit_code);
void add_actor_bench(CLI::App& app, int& exit_code);
/// all_reduce, all_gather, reduce_scatter and p2p.
void add_collective_benches(CLI::App& app, int& exit_code);

}  // namespace troupe::bench
