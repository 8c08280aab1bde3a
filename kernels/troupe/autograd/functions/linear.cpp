#include "troupe/ops/linear.hpp"

#include <utility>

#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/functions/fused_relu.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

class linear_operation : public operation {
 public:
  linear_operation(tensor x, parameter& weight, parameter* bias, bool input_wanted)
      : x_(std::move(x)), weight_(weight), bias_(bias), input_wanted_(input_wanted) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    if (!input_wanted_) return {tensor()};
    return {linear_backward_input(dy, weight_.as(dy.type()))};
  }
  void backward_weight(const tensor& dy) override {
    auto mode = begin_gradients({&weight_, bias_});
    linear_backward_weight(x_, dy, weight_.gradient, bias_ ? bias_->gradient : tensor(), mode);
  }
  bool weights_may_come_first() const override { return true; }
  std::vector<parameter*> parameters() const override { return wanted_of({&weight_, bias_}); }

 private:
  tensor x_;
  parameter& weight_;
  parameter* bias_;
  bool input_wanted_;
};

variable recorded(const variable& input, parameter& weight, parameter* bias, linear_activation activation) {
  auto x = in_compute_dtype(input);
  auto type = x.value.type();
  auto y = linear_forward(x.value, weight.as(type), bias ? bias->as(type) : tensor(), activation);
  if (!would_record({&x}, {&weight, bias})) return {std::move(y)};
  return record(std::move(y), {x},
                std::make_unique<linear_operation>(x.value, weight, bias, x.requires_gradient()));
}

}  // namespace

variable linear(const variable& x, parameter& weight, parameter* bias) {
  return recorded(x, weight, bias, linear_activation::none);
}

variable linear_relu(const variable& x, parameter& weight, parameter* bias) {
  return after_fused_relu(recorded(x, weight, bias, linear_activation::relu));
}

}  // namespace troupe
