#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/job/call.hpp"
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

/// Ends a call at once in all processes, each of which finds the same fault, and throws it as bad_input. The
/// job can continue. Not installed.
[[noreturn]] void refuse_call(actors::process::process& self, actors::job::call_kind kind, std::uint64_t step,
                              const std::string& problem);

/// Runs `prepare` before a call. If it throws bad_input, refuses the call; after another exception the job
/// fails.
template <class Prepare>
void prepare_call(actors::process::process& self, actors::job::call_kind kind, std::uint64_t step,
                  const Prepare& prepare) {
  std::string problem;
  fail_job_on_exception(self, [&] {
    try {
      prepare();
    } catch (const bad_input& refused) {
      problem = refused.what();
    }
  });
  if (!problem.empty()) refuse_call(self, kind, step, problem);
}

}  // namespace troupe::detail
