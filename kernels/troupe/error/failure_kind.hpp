#pragma once
#include <cstdint>
#include <exception>

#include "troupe/error/errors.hpp"

namespace troupe {

/// Of a failure that a process reports to its job. It decides the exit code of the job, however its processes
/// end afterwards.
enum class failure_kind : std::uint8_t {
  error = 1,
  bad_input = 2  ///< what the user gave cannot be used: exit code 2, and a restart does not help
};

inline failure_kind kind_of(const std::exception& problem) {
  return dynamic_cast<const bad_input*>(&problem) ? failure_kind::bad_input : failure_kind::error;
}

}  // namespace troupe
