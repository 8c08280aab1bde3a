#pragma once
#include <functional>

#include "troupe/autograd/variable.hpp"

namespace troupe {

/// y, computed from x, recorded with the gradient of x as a function of that of y. What `gradient` holds
/// lives as long as the graph.
variable record_one_input(const variable& x, tensor y, std::function<tensor(const tensor& dy)> gradient);

}  // namespace troupe
