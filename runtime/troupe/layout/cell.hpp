#pragma once
#include <compare>
#include <string>

namespace troupe::layout {

/// One point of a job's mesh of pipeline stages, replicas (data parallel) and slices (tensor parallel): what
/// is computed on one logical device and whose state is copied and restored as one. Constant for a job.
struct cell {
  int stage = 0;
  int replica = 0;
  int slice = 0;
  auto operator<=>(const cell&) const = default;
};

/// "stage 2 replica 0 slice 0"
std::string to_string(const cell& shown);

}  // namespace troupe::layout
