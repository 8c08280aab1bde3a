#include "troupe/ops/embedding.hpp"

#include "troupe/ops/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"
#include "troupe/ops/row_arguments.hpp"

namespace troupe {

tensor embedding_forward(const tensor& weight, const tensor& indices) {
  require_floating("embedding", "weight", weight);
  require_rank("embedding", "weight", weight, weight.type(), 2);
  require_indices("embedding", indices, weight.where());
  auto y = tensor::empty(gathered_extents(weight, indices), weight.type(), weight.where());
  kernels_on(weight.where()).rows.gather("embedding", weight, indices, y);
  return y;
}

void embedding_backward_weight(const tensor& indices, const tensor& dy, tensor weight_gradient,
                               gradient_mode mode) {
  constexpr auto operation = "embedding_backward_weight";
  require_rank(operation, "weight_gradient", weight_gradient, dtype::f32, 2);
  require_indices(operation, indices, weight_gradient.where());
  require_floating(operation, "dy", dy);
  require_argument(operation, "dy", dy, dy.type(), gathered_extents(weight_gradient, indices),
                   weight_gradient.where());
  kernels_on(dy.where()).rows.scatter_add(operation, indices, dy, weight_gradient, mode);
}

}  // namespace troupe
