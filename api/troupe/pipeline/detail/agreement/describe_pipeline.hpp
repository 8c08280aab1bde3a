#pragma once
#include "troupe/agreement/job_description.hpp"
#include "troupe/pipeline/pipeline.hpp"

namespace troupe::detail {

/// Adds everything that decides the bits of a pipeline's results, except the plan: module types, names,
/// shapes and initial values of parameters and buffers, the numeric options, the loss and the optimizer. Loss
/// and optimizer are functions, which cannot be compared; they are represented by fingerprints of their
/// results on a few inputs and step numbers (function_fingerprint.hpp), which include learning rates and
/// schedules. Other module members (an eps, a stride) are not compared.
void describe_pipeline(const Pipeline& pipeline, agreement::job_description& into);

}  // namespace troupe::detail
