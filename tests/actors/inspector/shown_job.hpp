#pragma once
#include "troupe/inspector/views/job_view.hpp"

namespace troupe::testing {

/// A job of two processes and two devices in which all is known, with a process that was replaced.
actors::inspector::job_view shown_job();
/// What a rank of it tells.
actors::messages::process_report report_of_rank(int rank, std::uint32_t incarnation = 0);
/// A scheduler's report of a job with a plan of two stages, in step 7 of 20.
actors::messages::scheduler_report running_job();

}  // namespace troupe::testing
