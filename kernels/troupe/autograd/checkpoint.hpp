#pragma once
#include <functional>
#include <vector>

#include "troupe/autograd/variable.hpp"

namespace troupe {

/// segment(x), of which only x is kept: backward computes the segment again and then runs back through it,
/// with the same bits as without (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost").
/// `parameters` are those the segment uses; `segment` must give the same value each time and is kept until
/// backward.
variable checkpoint(std::function<variable(const variable&)> segment, const variable& x,
                    std::vector<parameter*> parameters);

}  // namespace troupe
