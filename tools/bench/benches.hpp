#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace CLI {
class App;
}

namespace troupe::bench {

/// `troupe bench` and its hidden subcommand `worker`, for the processes that benches start and measure.
struct bench_commands {
  CLI::App& bench;
  CLI::App& workers;
  int& exit_code;  ///< of the program, for benches that check what they measure
};
bench_commands add_bench_commands(CLI::App& app, int& exit_code);

/// Each adds its subcommand to `troupe bench`, and its workers.
void add_recovery_bench(const bench_commands& to);
void add_pipeline_bench(const bench_commands& to);
void add_placement_bench(const bench_commands& to);
void add_compute_bench(const bench_commands& to);
void add_kernel_bench(const bench_commands& to);
void add_product_bench(const bench_commands& to);
void add_ddp_bench(const bench_commands& to);
void add_compression_bench(const bench_commands& to);
void add_actor_bench(const bench_commands& to);
void add_inspector_bench(const bench_commands& to);
/// all_reduce, all_gather, reduce_scatter and p2p.
void add_collective_benches(const bench_commands& to);

/// Adds `troupe bench worker NAME OPTIONS`; OPTIONS is a JSON object (see worker_command), and rank 0 prints
/// JSON objects.
void add_worker(const bench_commands& to, const char* name, std::function<void(const nlohmann::json&)> run);

}  // namespace troupe::bench
