#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/planning/predict_memory.hpp"
#include "troupe/program/device_memory.hpp"

namespace troupe {

/// What a logical device of a job holds and held at most, since its process began to host it. All in bytes.
struct device_memory_report {
  int device = 0;
  int rank = 0;               ///< of the process that hosts it
  troupe::device place = {};  ///< where it computes
  /// In the memory of its place: blocks of the allocator, by use: by_use[static_cast<int>(memory_use::...)]
  account_statistics measured;
  /// Of a device on a GPU what it holds in the memory of the CPU: messages, copies of the state.
  account_statistics on_host = {};
  std::optional<held_memory> predicted = {};
  /// Predicted peak / measured peak; none without a prediction, and before a training step is done.
  std::optional<double> ratio = {};
};

/// The memory of a process that hosts devices.
struct process_memory_report {
  int rank = 0;
  program::process_memory_use measured;
};

/// The memory of a job: what Trainer::memory_report returns.
struct memory_report {
  std::uint64_t steps = 0;  ///< optimizer steps done; 0: peaks are not yet those of training
  std::vector<device_memory_report> devices;     ///< [device]
  std::vector<process_memory_report> processes;  ///< by rank; those without a device are left out

  /// A table, in MiB, as torch.cuda.memory_summary is one. No line break at the end.
  std::string to_text() const;
  /// The event `memory` of --json: docs/reference.md describes its fields.
  std::string to_json() const;
};

}  // namespace troupe
