#pragma once
#include <span>
#include <vector>

namespace troupe::optim {
class optimizer_state;
}

namespace troupe::bench {

struct compute_model;

/// A parameter in a step by itself, without communication; in units of time.
struct timed_parameter {
  double used = 0;   ///< from the beginning of the forward pass until it comes to the weight
  double ready = 0;  ///< until something of its gradient is there to be sent
  double moves = 0;  ///< how long the link takes to reduce the gradient
};

/// The least mean time t of a step, on a processor that takes `compute` for it and a link that can
/// switch between gradients at any time. A step is no shorter than `compute`, nor than all the link's work.
/// There is a bound for each parameter too. The gradients of it and of all parameters used before it move
/// between the moment the first of them is ready and t + the moment the parameter is used, in the next step.
/// If gradients become ready in the opposite order of use, a link that serves first what is used first
/// attains the bound.
double best_step(double compute, std::span<const timed_parameter> parameters);

/// When a training step without communication comes to each parameter, as shares of the step's time: the
/// median of some steps. `moves` is the parameter's share of all elements.
std::vector<timed_parameter> time_parameters(compute_model& model, optim::optimizer_state& optimizer);

}  // namespace troupe::bench
