#pragma once
#include <string>
#include <vector>

#include "support/cuda_emulation/execution/options.hpp"

namespace troupe::testing {

/// A mistake that kernels are known for, in a kernel as small as it can be.
struct planted_mistake {
  std::string name;
  /// What the emulation says as it ends the program, or empty where the result is wrong instead.
  std::string text;
  /// Runs the kernel with the mistake or without. Returns whether its result is right.
  bool (*run)(bool is_planted, const emulation::execution_options& options);
};

const std::vector<planted_mistake>& planted_mistakes();

}  // namespace troupe::testing
