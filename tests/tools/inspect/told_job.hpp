#pragma once
#include "inspect/job_snapshot.hpp"

namespace troupe::testing {

/// A job of two processes, of which the second was replaced once, in a step; nothing is wrong with it.
job_snapshot told_job();
/// The same, in which rank 1 is stuck.
job_snapshot told_job_with_finding();

}  // namespace troupe::testing
