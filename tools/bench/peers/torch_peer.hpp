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
class torch_peer {
 public:
  /// Throws bad_input if it cannot be started.
  torch_peer(const std::filesystem::path& root, const std::filesystem::path& script, int threads);

  const std::string& version() const { return version_; }
  /// What a run takes on average over some milliseconds; none if PyTorch has no such kernel. Throws
  /// std::runtime_error, with what the script printed, if it ended.
  std::optional<double> seconds_of(const kernel_case& of);

 private:
  nlohmann::json next_answer();

  unique_fd requests_;
  child_process process_;
  unique_fd answers_;
  std::string version_;
};

}  // namespace troupe::bench
