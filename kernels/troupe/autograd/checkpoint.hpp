#pragma once
#include <functional>
#include <vector>

#include "troupe/autograd/variable.hpp"

namespace troupe {

/// Activation checkpointing: computes segment(inputs) and saves only the inputs. Backward recomputes the
/// segment, with the compute dtype and the random numbers of the forward pass, and then runs backward through
/// it; the bits are the same as without checkpointing (Chen et al. 2016, "Training Deep Nets with Sublinear
/// Memory Cost"). The parameters that the segment uses get their gradients.
///
/// `segment` must be deterministic, and is kept until backward. Throws std::invalid_argument if it uses a
/// variable that requires a gradient and is not among the inputs.
variable checkpoint(std::function<variable(const std::vector<variable>&)> segment,
                    const std::vector<variable>& inputs);
/// The same with one input.
variable checkpoint(std::function<variable(const variable&)> segment, const variable& x);

}  // namespace troupe
