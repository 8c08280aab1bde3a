#include "troupe/ops/mse_loss.hpp"

#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

void require_arguments(std::string_view operation, const tensor& prediction, const tensor& target) {
  require_floating(operation, "prediction", prediction);
  require_like(operation, "target", target, prediction);
}

}  // namespace

double mse_loss_forward(const tensor& prediction, const tensor& target) {
  require_arguments("mse_loss", prediction, target);
  return kernels_on(prediction.device()).mse_loss.forward(prediction, target);
}

tensor mse_loss_backward(const tensor& prediction, const tensor& target, double scale) {
  require_arguments("mse_loss_backward", prediction, target);
  auto gradient = empty_like(prediction);
  kernels_on(prediction.device())
      .mse_loss.backward(prediction, target, static_cast<float>(2 * scale), gradient);
  return gradient;
}

}  // namespace troupe
