#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace troupe::bench {

/// How to start a script that needs PyTorch: in the system at `root` by chroot, with an OpenBLAS whose
/// threads are OpenMP's, or, if `root` is /, with this system's python3. Throws bad_input if the script
/// cannot be read.
std::vector<std::string> torch_command(const std::filesystem::path& root, const std::filesystem::path& script,
                                       int threads);

/// Runs torch_compute.py, where each field of `options` is an argument "--name value", and returns what it
/// measured (see run_for_object). `threads` is among the fields.
nlohmann::json run_torch(const std::filesystem::path& root, const std::filesystem::path& script,
                         const nlohmann::json& options);

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
