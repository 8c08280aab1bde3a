#include "troupe/ops/linear.hpp"

#include <algorithm>
#include <utility>

#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/functions/fused_relu.hpp"
#include "troupe/autograd/gradient_rows.hpp"
#include "troupe/autograd/saved_parameter.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/rearrange.hpp"

namespace troupe {
namespace {

class linear_operation : public operation {
 public:
  linear_operation(tensor x, parameter& weight, parameter* bias, bool input_wanted)
      : x_(std::move(x)), weight_(&weight), bias_(bias), input_wanted_(input_wanted) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    if (!input_wanted_) return {tensor()};
    return {linear_backward_input(dy, weight_.as(dy.dtype()))};
  }
  void backward_weight(const tensor& dy) override {
    auto* weight = weight_.target();
    auto mode = begin_gradients({weight, bias_});
    linear_backward_weight(x_, dy, gradient_of(weight), gradient_of(bias_), mode);
  }
  void backward_weight_by_rows(const tensor& dy, const rows_callback& on_rows) override {
    auto& weight = *weight_.target();
    auto num_rows = weight.extents[0], block = gradient_rows_at_a_time(weight.extents);
    if (block >= num_rows || trainable_parameters({&weight}).empty()) return backward_weight(dy);
    auto* bias = trainable_parameters({bias_}).empty() ? nullptr : bias_;
    auto mode = begin_gradients({&weight, bias});
    if (bias) {
      linear_backward_bias(dy, bias->gradient(), mode);
      on_rows(*bias, num_rows);
    }
    for (std::int64_t first = 0; first < num_rows; first += block) {
      auto count = std::min(block, num_rows - first);
      linear_backward_weight(x_, slice(dy, -1, first, count), weight.gradient().rows(first, count), {}, mode);
      on_rows(weight, first + count);
    }
  }
  bool can_run_weight_first() const override { return true; }
  std::vector<parameter*> parameters() const override {
    return trainable_parameters({weight_.target(), bias_});
  }

 private:
  tensor x_;
  saved_parameter weight_;
  parameter* bias_;
  bool input_wanted_;
};

variable recorded(const variable& input, parameter& weight, parameter* bias, linear_activation activation) {
  make_ready_to_convert({&weight, bias});
  auto x = in_compute_dtype(input);
  require_floating("linear", "x", x.value);
  auto type = x.value.dtype();
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
