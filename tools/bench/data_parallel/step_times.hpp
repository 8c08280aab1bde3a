#pragma once
#include <vector>

#include "bench/compute/compute_models.hpp"
#include "bench/data_parallel/best_step.hpp"

namespace troupe::bench {

/// When a training step without communication comes to each parameter, the median of some steps. `moves` is
/// the parameter's share of all elements.
std::vector<timed_parameter> time_parameters(compute_model& model, optim::optimizer_state& optimizer);

}  // namespace troupe::bench
