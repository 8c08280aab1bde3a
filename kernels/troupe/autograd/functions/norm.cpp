#include "troupe/ops/norm.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/saved_parameter.hpp"

namespace troupe {
namespace {

tensor value_of(const parameter* each) { return each ? each->value() : tensor(); }

class layer_norm_operation : public operation {
 public:
  layer_norm_operation(tensor x, const layer_norm_result& made, parameter* weight, parameter* bias)
      : x_(std::move(x)), mean_(made.mean), rstd_(made.rstd), weight_(weight), bias_(bias) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    return {layer_norm_backward_input(dy, x_, weight_.value(), mean_, rstd_)};
  }
  void backward_weight(const tensor& dy) override {
    auto* weight = weight_.target();
    auto mode = begin_gradients({weight, bias_});
    layer_norm_backward_weight(dy, x_, mean_, rstd_, gradient_of(weight), gradient_of(bias_), mode);
  }
  std::vector<parameter*> parameters() const override {
    return trainable_parameters({weight_.target(), bias_});
  }

 private:
  tensor x_, mean_, rstd_;
  saved_parameter weight_;
  parameter* bias_;
};

class rms_norm_operation : public operation {
 public:
  rms_norm_operation(tensor x, tensor rstd, parameter* weight)
      : x_(std::move(x)), rstd_(std::move(rstd)), weight_(weight) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    return {rms_norm_backward_input(dy, x_, weight_.value(), rstd_)};
  }
  void backward_weight(const tensor& dy) override {
    auto* weight = weight_.target();
    auto mode = begin_gradients({weight});
    rms_norm_backward_weight(dy, x_, rstd_, gradient_of(weight), mode);
  }
  std::vector<parameter*> parameters() const override { return trainable_parameters({weight_.target()}); }

 private:
  tensor x_, rstd_;
  saved_parameter weight_;
};

}  // namespace

variable layer_norm(const variable& x, parameter* weight, parameter* bias, double eps) {
  make_ready({weight, bias});
  auto made = layer_norm_forward(x.value, value_of(weight), value_of(bias), eps);
  if (!would_record({&x}, {weight, bias})) return {made.y};
  return record(made.y, {x}, std::make_unique<layer_norm_operation>(x.value, made, weight, bias));
}

variable rms_norm(const variable& x, parameter* weight, double eps) {
  make_ready({weight});
  auto made = rms_norm_forward(x.value, value_of(weight), eps);
  if (!would_record({&x}, {weight})) return {made.y};
  return record(made.y, {x}, std::make_unique<rms_norm_operation>(x.value, made.rstd, weight));
}

}  // namespace troupe
