#pragma once
#include <span>

namespace troupe::bench {

/// A parameter in a step by itself, without communication; in seconds.
struct timed_parameter {
  double used = 0;   ///< from the beginning of the forward pass until it comes to the weight
  double ready = 0;  ///< until something of its gradient is there to be sent
  double moves = 0;  ///< how long the link takes to reduce the gradient
};

/// The least time of a step, over many of them, on one processor that takes `compute` seconds and one link
/// that may be given to any gradient at any time. Besides either's work: with t the time of a step, the
/// gradients of all parameters that are used no later than one of them move between the first moment one of
/// them is ready and t + the last moment one is used. These times lie within each other if gradients come in
/// the opposite order, and then a link that serves first what is needed first attains the bound.
double best_step(double compute, std::span<const timed_parameter> parameters);

}  // namespace troupe::bench
