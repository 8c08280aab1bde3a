#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "child_process.hpp"

namespace troupe::bench {

// What needs PyTorch runs in the system at `root` by chroot, with an OpenBLAS whose threads are OpenMP's, or,
// if `root` is /, with this system's python3. Throws bad_input if the script cannot be read.

/// Runs torch_compute.py, where each field of `options` is an argument "--name value", and returns what it
/// measured (see run_for_object). `threads` is among the fields.
nlohmann::json run_torch(const std::filesystem::path& root, const std::filesystem::path& script,
                         const nlohmann::json& options);

/// PyTorch in a process of its own (torch_kernels.py), which runs the kernels that it is asked for and sleeps
/// in between.
class torch_kernels {
 public:
  /// Throws bad_input if it cannot be started.
  torch_kernels(const std::filesystem::path& root, const std::filesystem::path& script, int threads);

  /// The mean time of a run of {"kernel":..,"extents":..,"dtype":..} over some milliseconds; nothing if
  /// PyTorch has no such kernel. Throws std::runtime_error, with what the script printed, if it ended.
  std::optional<double> seconds_of(const nlohmann::json& kernel);

 private:
  nlohmann::json next_answer();

  posix::unique_fd requests_;
  child_process process_;
  posix::unique_fd answers_;
};

struct torchrun_options {
  std::filesystem::path root;  ///< of a system with PyTorch, entered by chroot; empty: none
  std::string script;          ///< in there; see tools/bench/README.md for what it must print
  int runs = 3;
};

/// Runs the script once and returns the seconds from the kill to the first step after it; nothing, with a
/// warning that holds what the script printed, if it measured no recovery. Throws bad_input if it cannot be
/// started.
std::optional<double> run_torchrun(const torchrun_options& options, int num_processes);

}  // namespace troupe::bench
