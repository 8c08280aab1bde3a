#include "troupe/ops/embedding.hpp"

#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {

tensor embedding_forward(const tensor& weight, const tensor& indices) {
  require_floating("embedding", "weight", weight);
  require_rank("embedding", "weight", weight, weight.dtype(), 2);
  require_indices("embedding", indices, weight.device());
  auto y = tensor::empty(gathered_extents(weight, indices), weight.dtype(), weight.device());
  kernels_on(weight.device()).rows.gather("embedding", weight, indices, y);
  return y;
}

void embedding_backward_weight(const tensor& indices, const tensor& dy, tensor weight_gradient,
                               gradient_mode mode) {
  constexpr auto operation = "embedding_backward_weight";
  require_rank(operation, "weight_gradient", weight_gradient, dtype::f32, 2);
  require_indices(operation, indices, weight_gradient.device());
  require_floating(operation, "dy", dy);
  require_argument(operation, "dy", dy, dy.dtype(), gathered_extents(weight_gradient, indices),
                   weight_gradient.device());
  kernels_on(dy.device()).rows.scatter_add(operation, indices, dy, weight_gradient, mode);
}

}  // namespace troupe
