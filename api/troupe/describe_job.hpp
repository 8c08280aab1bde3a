#pragma once
#include <string>

#include "troupe/config/job_options.hpp"
#include "troupe/parallel/pipeline.hpp"
#include "troupe/program/job_description.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe {

/// What all processes must have alike before they train together: the options that results or messages depend
/// on, the plan, and the pipeline. Folders may differ, but not whether there are any.
job_description describe_job(const Pipeline& pipeline, const job_options& options, const plan& training,
                             const std::string& numeric_class);

}  // namespace troupe
