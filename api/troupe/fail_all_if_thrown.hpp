#pragma once
#include <exception>

#include "troupe/node/node.hpp"

namespace troupe {

/// Runs `prepare`. If it throws, the others end with this cause too, instead of noticing that a process has
/// gone away. Not installed.
template <class Prepare>
auto fail_all_if_thrown(node& self, const Prepare& prepare) {
  try {
    return prepare();
  } catch (const std::exception& problem) {
    if (self.world_size() > 1) self.fail(problem.what());
    throw;
  }
}

}  // namespace troupe
