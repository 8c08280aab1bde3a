#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/kernels/kernel_cases.hpp"
#include "child_process.hpp"

namespace troupe::bench {

/// PyTorch in a process of its own (torch_kernels.py), which runs the kernels that it is asked for and sleeps
/// in between.
class torch_kernels {
 public:
  /// Throws bad_input if it cannot be started.
  torch_kernels(const std::filesystem::path& root, const std::filesystem::path& script, int threads);

  /// The mean time of a run over some milliseconds; nothing if PyTorch has no such kernel. Throws
  /// std::runtime_error, with what the script printed, if it ended.
  std::optional<double> seconds_of(const kernel_case& of);

 private:
  nlohmann::json next_answer();

  unique_fd requests_;
  child_process process_;
  unique_fd answers_;
};

}  // namespace troupe::bench
