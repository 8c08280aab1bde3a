#include "troupe/optim/detail/gradients_of.hpp"

namespace troupe::optim::detail {

std::vector<tensor> gradients_of(std::span<parameter* const> parameters) {
  std::vector<tensor> gradients;
  for (const auto* each : parameters) {
    each->wait_ready();
    if (each->needs_step()) gradients.push_back(each->gradient());
  }
  return gradients;
}

void drop_gradients(std::span<const named_parameter> parameters) {
  for (const auto& each : parameters) each.target->has_gradient = false;
}

}  // namespace troupe::optim::detail
