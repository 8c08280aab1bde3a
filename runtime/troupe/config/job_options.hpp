#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Everything a training job can be told, by C++, one YAML file or the command line (in rising precedence).
/// The YAML keys and the command line's options are the fields' names with '-' for '_' on the command line.
struct job_options {
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";  ///< folder of the dataset
  int epochs = 5;                    ///< passes over the training data
  std::uint64_t steps = 0;           ///< stop after so many optimizer steps in all; 0: epochs decide
  int batch = 256;                   ///< global batch in samples
  int microbatches = 8;              ///< per step; must divide `batch`
  int stages = 0;                    ///< pipeline stages; 0: one per device
  schedule_kind schedule = schedule_kind::one_f_one_b;
  int devices = 1;                   ///< devices in each process
  int threads = 1;                   ///< compute threads per device; the result's bits depend on it
  std::uint64_t seed = 1;
  double learning_rate = 1e-3;
  std::filesystem::path snapshot_dir;            ///< empty: snapshots in memory only
  std::uint64_t snapshot_every = 1;              ///< steps between snapshots in memory
  std::chrono::milliseconds snapshot_interval = std::chrono::seconds(5);  ///< least time between snapshots on disk
  std::uint64_t disk_every = 0;      ///< every so many steps on disk instead of by time; 0: by time
  bool resume = false;               ///< start from the newest valid snapshot in snapshot_dir
  std::filesystem::path trace_dir;   ///< write a Perfetto trace per process there; empty: none
  std::string isa = "auto";          ///< cap of the CPU instruction set: auto, sse41, avx2, avx512_core, avx512_core_bf16
  std::string network_interface = "lo";
  bool verify_frames = false;        ///< authenticate tensor bytes too
  std::string log_level = "warn";    ///< trace, debug, info, warn, error, off
  std::chrono::milliseconds join_timeout = std::chrono::seconds(60);  ///< workers that have not joined by then end the job
  std::string fault;                 ///< fault drill, see fault/fault_plan.hpp; empty: none
  bool json = false;                 ///< one JSON object per line on standard output, nothing else
};

/// Sets the fields named in the YAML file. Throws bad_input with file, line, the unknown key or bad value, and what is known.
void apply_yaml(const std::filesystem::path& file, job_options& options);

/// Throws bad_input for values that cannot work together, each with what to change (batch not divisible, ...).
void check_options(const job_options& options);

}  // namespace troupe
