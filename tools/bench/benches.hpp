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
void add_overlap_bench(const bench_commands& to);
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

/// Adds `troupe bench worker train`: a small training job that needs no data set.
void add_training_worker(const bench_commands& to);

/// `troupe bench worker gpt`: trains a GPT (4 layers, width 256, context 128) on made-up text, `--batch`
/// sequences a step. Rank 0 prints {"event":"trained","step_s":..,"events_per_step":..,"event_ns":..,
/// "weights_sha256":..}: the median time from one step's end to the next, how many events its process records
/// in a step, and how long recording one takes.
void add_gpt_worker(const bench_commands& to);

/// `troupe bench worker many_stages`: trains a pipeline of `--stages` small stages, which runs for `--window`
/// seconds, is paused for as long, and ends. Rank 0 prints a line for each of the two windows:
/// {"event":"window","is_paused":..,"begin_s":..,"end_s":..,"process_s":..,"http_s":..}, with the moments on
/// the steady clock and the processor time of the process and of the inspector's thread in between.
void add_many_stages_worker(const bench_commands& to);

}  // namespace troupe::bench
