#pragma once
#include "troupe/parallel/pipeline.hpp"
#include "troupe/program/job_description.hpp"

namespace troupe {

/// Adds what decides a pipeline's bits, beside the plan: the types of its modules, the names, shapes and
/// initial values of parameters and buffers, how it computes, and what loss and optimizer are and do. These
/// two are functions, so they are tried: on a few numbers, and for the optimizer at a few step numbers, so
/// that learning rates and schedules count. What a module keeps beside parameters and buffers (an eps, a
/// stride) is not seen.
void describe_pipeline(const Pipeline& pipeline, job_description& into);

}  // namespace troupe
