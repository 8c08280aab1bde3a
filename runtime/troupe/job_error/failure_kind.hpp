#pragma once
#include <exception>

#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_failed.hpp"

namespace troupe {

inline failure_kind kind_of(const std::exception& problem) {
  return dynamic_cast<const bad_input*>(&problem) ? failure_kind::bad_input : failure_kind::error;
}

}  // namespace troupe
