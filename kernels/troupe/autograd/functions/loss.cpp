#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/mse_loss.hpp"

namespace troupe {
namespace {

/// The value of the gradient that backward passes to a loss.
double value_of(std::string_view loss, const tensor& gradient) {
  if (gradient.dtype() != dtype::f32 || gradient.num_elements() != 1)
    throw_invalid(loss, "a scalar f32 gradient", describe(gradient));
  return gradient.values<float>()[0];
}

tensor scaled(double loss_sum, double gradient_scale) {
  return tensor::full({}, static_cast<float>(gradient_scale * loss_sum));
}

class cross_entropy_operation : public operation {
 public:
  cross_entropy_operation(tensor logits, tensor labels, tensor log_sum_exp, double scale,
                          const cross_entropy_options& options)
      : logits_(std::move(logits)),
        labels_(std::move(labels)),
        log_sum_exp_(std::move(log_sum_exp)),
        scale_(scale),
        options_(options) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    return {cross_entropy_backward(logits_, labels_, log_sum_exp_, scale_ * value_of("cross_entropy", dy),
                                   options_)};
  }

 private:
  tensor logits_, labels_, log_sum_exp_;
  double scale_;
  cross_entropy_options options_;
};

class mse_loss_operation : public operation {
 public:
  mse_loss_operation(tensor prediction, tensor target, double scale)
      : prediction_(std::move(prediction)), target_(std::move(target)), scale_(scale) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    return {mse_loss_backward(prediction_, target_, scale_ * value_of("mse_loss", dy))};
  }

 private:
  tensor prediction_, target_;
  double scale_;
};

bool are_of_one_dtype(const tensor& a, const tensor& b) {
  return !a.defined() || !b.defined() || !is_floating(a.dtype()) || !is_floating(b.dtype()) ||
         a.dtype() == b.dtype();
}

}  // namespace

loss_result cross_entropy(const variable& logits, const tensor& labels, double gradient_scale,
                          const cross_entropy_options& options) {
  auto result = cross_entropy_forward(logits.value, labels, options);
  auto loss = record(scaled(result.loss_sum, gradient_scale), {logits},
                     std::make_unique<cross_entropy_operation>(logits.value, labels, result.log_sum_exp,
                                                               gradient_scale, options));
  return {std::move(loss),    result.loss_sum,        result.num_correct,
          result.num_counted, result.device_loss_sum, std::move(result.deferred)};
}

loss_result mse_loss(const variable& prediction, const tensor& target, double gradient_scale) {
  if (!are_of_one_dtype(prediction.value, target))
    return mse_loss(cast(prediction, dtype::f32), cast(target, dtype::f32), gradient_scale);
  auto loss_sum = mse_loss_forward(prediction.value, target);
  auto loss = record(scaled(loss_sum, gradient_scale), {prediction},
                     std::make_unique<mse_loss_operation>(prediction.value, target, gradient_scale));
  return {.loss = std::move(loss),
          .loss_sum = loss_sum,
          .num_counted = target.num_elements(),
          .device_loss_sum = {},
          .deferred = {}};
}

}  // namespace troupe
