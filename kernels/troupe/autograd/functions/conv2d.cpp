#include "troupe/ops/conv2d.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/functions/fused_relu.hpp"
#include "troupe/autograd/saved_parameter.hpp"
#include "troupe/ops/detail/arguments.hpp"

namespace troupe {
namespace {

class conv2d_operation : public operation {
 public:
  conv2d_operation(tensor x, parameter& weight, parameter* bias, const conv2d_options& options,
                   bool input_wanted)
      : x_(std::move(x)), weight_(&weight), bias_(bias), options_(options), input_wanted_(input_wanted) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    if (!input_wanted_) return {tensor()};
    return {conv2d_backward_input(dy, weight_.as(dy.dtype()), x_.shape(), options_)};
  }
  void backward_weight(const tensor& dy) override {
    auto* weight = weight_.target();
    auto mode = begin_gradients({weight, bias_});
    conv2d_backward_weight(x_, dy, gradient_of(weight), gradient_of(bias_), options_, mode);
  }
  bool can_run_weight_first() const override { return true; }
  std::vector<parameter*> parameters() const override {
    return trainable_parameters({weight_.target(), bias_});
  }

 private:
  tensor x_;
  saved_parameter weight_;
  parameter* bias_;
  conv2d_options options_;
  bool input_wanted_;
};

}  // namespace

variable conv2d(const variable& input, parameter& weight, parameter* bias, const conv2d_options& options) {
  make_ready_to_convert({&weight, bias});
  auto x = in_compute_dtype(input);
  require_floating("conv2d", "x", x.value);
  auto type = x.value.dtype();
  auto y = conv2d_forward(x.value, weight.as(type), bias ? bias->as(type) : tensor(), options);
  if (!would_record({&x}, {&weight, bias})) return {std::move(y)};
  auto made =
      record(std::move(y), {x},
             std::make_unique<conv2d_operation>(x.value, weight, bias, options, x.requires_gradient()));
  return options.relu ? after_fused_relu(made) : made;
}

}  // namespace troupe
