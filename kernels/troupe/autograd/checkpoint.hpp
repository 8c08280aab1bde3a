#pragma once
#include <functional>
#include <vector>

#include "troupe/autograd/variable.hpp"

namespace troupe {

/// segment(inputs), of which only the inputs are kept: backward computes the segment again, in the compute
/// dtype and with the random numbers of forward, and then runs back through it, with the same bits as without
/// (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). The parameters that the segment uses
/// get their gradients.
///
/// `segment` must give the same value each time and is kept until backward. Throws std::invalid_argument if
/// it reads a variable that wants a gradient and is not among the inputs.
variable checkpoint(std::function<variable(const std::vector<variable>&)> segment,
                    const std::vector<variable>& inputs);
/// The same with one input.
variable checkpoint(std::function<variable(const variable&)> segment, const variable& x);

}  // namespace troupe
