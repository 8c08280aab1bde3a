#include "troupe/optim/gradients_of.hpp"

namespace troupe::optim {

std::vector<tensor> gradients_of(std::span<parameter* const> parameters) {
  std::vector<tensor> gradients;
  for (const auto* each : parameters)
    if (each->has_gradient) gradients.push_back(each->gradient);
  return gradients;
}

}  // namespace troupe::optim
