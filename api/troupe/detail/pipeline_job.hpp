#pragma once
#include <string>

#include "troupe/config/job_options.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/pipeline/pipeline.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::detail {

/// The plan that a pipeline's schedule, device map or plan file asks for. `most_devices`: as many as the
/// processes can have; with fewer stages only as many are used. Throws bad_input, saying what to do, for what
/// does not fit together.
plan plan_for(const Pipeline& pipeline, const job_options& options, int most_devices);

/// Why the pipeline's model cannot be trained: all its parameters are frozen; empty if it can.
std::string problem_of_training(const Pipeline& pipeline);

/// The job that trains a pipeline by this plan, before the processes have agreed on where it begins.
/// `places`: where this process hosts devices.
actors::job::job_definition definition_of(const Pipeline& pipeline, const job_options& options,
                                          const plan& training, int world_size,
                                          const mesh::process_places& places = {});

}  // namespace troupe::detail
