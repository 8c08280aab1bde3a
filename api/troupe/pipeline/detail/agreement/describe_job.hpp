#pragma once
#include <string>

#include "troupe/agreement/job_description.hpp"
#include "troupe/config/job_options.hpp"
#include "troupe/mesh/hosting.hpp"
#include "troupe/pipeline/pipeline.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::detail {

/// Describes what must be equal in all processes before they train together: the options that decide results
/// or message formats, the plan, its placement, who hosts it when the job begins, and the pipeline. Paths of
/// folders may differ; whether a folder is set may not.
agreement::job_description describe_job(const Pipeline& pipeline, const job_options& options,
                                        const plan& training, const mesh::placement& placed,
                                        const mesh::hosting& home, const std::string& numeric_class);

}  // namespace troupe::detail
