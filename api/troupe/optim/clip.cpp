#include "troupe/optim/clip.hpp"

#include "troupe/ops/reduction.hpp"
#include "troupe/optim/detail/gradients_of.hpp"

namespace troupe::optim {

double clip_grad_norm(std::span<parameter* const> parameters, double max_norm) {
  return clip_by_global_norm(detail::gradients_of(parameters), max_norm);
}

}  // namespace troupe::optim
