#pragma once
#include <CLI/CLI.hpp>

namespace troupe::bench {

/// What is measured: `troupe bench worker train|compute|ddp|compression|hop|probe`, each a process
/// of a job. They print JSON objects on rank 0.
void add_training_worker(CLI::App& app);
void add_compute_worker(CLI::App& app);
void add_ddp_worker(CLI::App& app);
void add_compression_worker(CLI::App& app);
void add_hop_worker(CLI::App& app);
void add_probe_worker(CLI::App& app);

}  // namespace troupe::bench
