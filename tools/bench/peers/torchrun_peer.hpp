#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::bench {

struct torchrun_options {
  std::filesystem::path root;  ///< of a system with PyTorch, entered by chroot; empty: none
  std::string script;          ///< in there; see tools/bench/README.md for what it must print
  int runs = 3;
};

/// Runs the script once: seconds from the kill to the first step after it. None, with a warning that holds
/// what the script printed, if it measured no recovery. Throws bad_input if it cannot be started.
std::optional<double> run_torchrun(const torchrun_options& options, int num_processes);

}  // namespace troupe::bench
