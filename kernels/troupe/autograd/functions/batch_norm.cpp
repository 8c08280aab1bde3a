#include "troupe/ops/batch_norm.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/saved_parameter.hpp"
#include "troupe/ops/elementwise.hpp"

namespace troupe {
namespace {

/// Common base of training and inference, which differ in whether mean and rstd depend on x.
class normalisation : public operation {
 public:
  normalisation(tensor x, tensor mean, tensor rstd, parameter& weight, parameter& bias)
      : x_(std::move(x)), mean_(std::move(mean)), rstd_(std::move(rstd)), weight_(&weight), bias_(bias) {}

  void backward_weight(const tensor& dy) override {
    auto* weight = weight_.target();
    auto mode = begin_gradients({weight, &bias_});
    batch_norm_backward_weight(x_, dy, mean_, rstd_, gradient_of(weight), gradient_of(&bias_), mode);
  }
  std::vector<parameter*> parameters() const override {
    return trainable_parameters({weight_.target(), &bias_});
  }

 protected:
  tensor x_, mean_, rstd_;
  saved_parameter weight_;
  parameter& bias_;
};

class batch_norm_operation : public normalisation {
 public:
  using normalisation::normalisation;
  std::vector<tensor> backward_input(const tensor& dy) override {
    return {batch_norm_backward_input(dy, x_, weight_.value(), mean_, rstd_)};
  }
};

tensor zeros_like(const tensor& model) { return tensor::zeros(model.shape(), model.dtype(), model.device()); }

/// dx = dy weight rstd: mean and variance are constants.
class batch_norm_inference_operation : public normalisation {
 public:
  using normalisation::normalisation;
  std::vector<tensor> backward_input(const tensor& dy) override {
    auto zero = zeros_like(mean_), one = add(zero, 1.0F);
    auto factor = multiply(weight_.value(), rstd_);
    return {batch_norm_inference(dy, factor, zero, zero, one, {.epsilon = 0})};
  }
};

/// 1 / sqrt(variance + epsilon), as batch_norm_inference takes it.
tensor rstd_of(const tensor& variance, double epsilon) {
  auto zero = zeros_like(variance), one = add(zero, 1.0F);
  return batch_norm_inference(one.reshape({1, one.num_elements()}), {}, {}, zero, variance,
                              {.epsilon = epsilon})
      .reshape(variance.shape());
}

}  // namespace

variable batch_norm(const variable& x, parameter& weight, parameter& bias, const tensor& running_mean,
                    const tensor& running_variance, const batch_norm_options& options) {
  make_ready({&weight, &bias});
  auto made =
      batch_norm_forward(x.value, weight.value(), bias.value(), running_mean, running_variance, options);
  if (!would_record({&x}, {&weight, &bias})) return {made.y};
  return record(made.y, {x},
                std::make_unique<batch_norm_operation>(x.value, made.mean, made.rstd, weight, bias));
}

variable batch_norm_inference(const variable& x, parameter& weight, parameter& bias, const tensor& mean,
                              const tensor& variance, const batch_norm_options& options) {
  make_ready({&weight, &bias});
  auto y = batch_norm_inference(x.value, weight.value(), bias.value(), mean, variance, options);
  if (!would_record({&x}, {&weight, &bias})) return {std::move(y)};
  auto rstd = rstd_of(variance, options.epsilon);
  return record(
      std::move(y), {x},
      std::make_unique<batch_norm_inference_operation>(x.value, mean.clone(), std::move(rstd), weight, bias));
}

}  // namespace troupe
