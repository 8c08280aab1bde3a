#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace troupe::bench {

struct torchrun_options {
  std::filesystem::path root;  ///< of a system with PyTorch, entered by chroot; empty: none
  std::string script;          ///< in there; see tools/bench/README.md for what it must print
  int runs = 3;
};

/// Runs the script once: what it printed, with "kill_to_first_step_s". Throws bad_input if it cannot be run,
/// and std::runtime_error if it did not recover.
nlohmann::json run_torchrun(const torchrun_options& options, int num_processes);

}  // namespace troupe::bench
