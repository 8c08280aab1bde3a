#pragma once
#include <functional>

#include "troupe/autograd/variable.hpp"

namespace troupe {

/// Records y as computed from x; `gradient` maps the gradient of y to that of x. The captures of `gradient`
/// live as long as the graph.
variable record_one_input(const variable& x, tensor y, std::function<tensor(const tensor& dy)> gradient);

}  // namespace troupe
