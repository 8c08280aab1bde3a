#pragma once
#include "troupe/config/job_options.hpp"
#include "troupe/pipeline/pipeline.hpp"

namespace troupe::detail {

/// Throws bad_input, naming the option, if the command line or a YAML file sets a pipeline option and the
/// pipeline has another value, that is, the program ignores the option. Pipeline options are stages,
/// device_map, microbatches, schedule, precision, clip_grad_norm, gradient_sync, top_k_gradients,
/// power_sgd_rank, average_every and loss_scale.
void refuse_unused_options(const job_options& options, const Pipeline& pipeline);

}  // namespace troupe::detail
