#pragma once
#include <vector>

#include "best_step.hpp"
#include "compute_models.hpp"

namespace troupe::bench {

/// When a training step without communication comes to each parameter, the median of some steps. `moves` is
/// the parameter's share of all elements.
std::vector<timed_parameter> time_parameters(compute_model& model, optim::optimizer_state& optimizer);

}  // namespace troupe::bench
