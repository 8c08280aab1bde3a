#pragma once
#include <exception>

#include "troupe/job_error/job_errors.hpp"
#include "troupe/process/process.hpp"

namespace troupe::detail {

/// Runs `prepare` and returns its result. If it throws, tells the other processes the cause, so that the job
/// fails with it instead of with a lost peer; then rethrows. Not installed.
template <class Prepare>
auto fail_job_on_exception(actors::process::process& self, const Prepare& prepare) {
  try {
    return prepare();
  } catch (const std::exception& problem) {
    if (self.world_size() > 1) self.fail(problem.what(), kind_of(problem));
    throw;
  }
}

}  // namespace troupe::detail
