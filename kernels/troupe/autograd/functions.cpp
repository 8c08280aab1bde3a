#include "troupe/autograd/functions.hpp"

#include <algorithm>
#include <utility>

#include "troupe/autograd/tape.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/activation.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/linear.hpp"

namespace troupe {
namespace {

class linear_operation : public operation {
 public:
  linear_operation(tensor x, const parameter& weight, const parameter* bias, bool input_needs_gradient)
      : x_(std::move(x)),
        weight_(weight.value),
        weight_gradient_(weight.gradient),
        bias_gradient_(bias ? bias->gradient : tensor()),
        input_needs_gradient_(input_needs_gradient) {}

  std::vector<tensor> backward_input(tensor dy) override {
    dy_ = std::move(dy);
    if (!input_needs_gradient_) return {tensor()};
    return {linear_backward_input(dy_, weight_)};
  }
  void backward_weight() override {
    linear_backward_weight(x_, dy_, weight_gradient_, bias_gradient_);
    x_ = dy_ = {};
  }
  bool has_parameters() const override { return true; }

 private:
  tensor x_, dy_, weight_, weight_gradient_, bias_gradient_;
  bool input_needs_gradient_;
};

class relu_operation : public operation {
 public:
  explicit relu_operation(tensor y) : y_(std::move(y)) {}
  std::vector<tensor> backward_input(tensor dy) override {
    return {relu_backward(dy, std::exchange(y_, {}))};
  }

 private:
  tensor y_;
};

class flatten_operation : public operation {
 public:
  explicit flatten_operation(shape extents) : extents_(std::move(extents)) {}
  std::vector<tensor> backward_input(tensor dy) override { return {dy.reshape(extents_)}; }

 private:
  shape extents_;
};

class add_operation : public operation {
 public:
  std::vector<tensor> backward_input(tensor dy) override { return {dy, dy}; }
};

class cross_entropy_operation : public operation {
 public:
  cross_entropy_operation(tensor logits, tensor labels, double scale)
      : logits_(std::move(logits)), labels_(std::move(labels)), scale_(scale) {}

  std::vector<tensor> backward_input(tensor dy) override {
    if (dy.defined() && (dy.type() != dtype::f32 || dy.num_elements() != 1))
      throw_invalid("cross_entropy", "a scalar f32 gradient or none", describe(dy));
    auto factor = dy.defined() ? scale_ * dy.values<float>()[0] : scale_;
    return {cross_entropy_backward(std::exchange(logits_, {}), std::exchange(labels_, {}), factor)};
  }

 private:
  tensor logits_, labels_;
  double scale_;
};

bool is_recorded(const variable& x) { return x.recorder && x.recorder->needs_gradient(x); }

}  // namespace

variable linear(const variable& x, const parameter& weight, const parameter* bias) {
  auto y = linear_forward(x.value, weight.value, bias ? bias->value : tensor());
  if (!x.recorder) return {std::move(y)};
  return x.recorder->record(std::move(y), {x},
                            std::make_unique<linear_operation>(x.value, weight, bias, is_recorded(x)));
}

variable relu(const variable& x) {
  auto y = relu_forward(x.value);
  if (!x.recorder) return {std::move(y)};
  return x.recorder->record(y, {x}, std::make_unique<relu_operation>(y));
}

variable flatten(const variable& x) {
  if (x.value.extents().rank() < 1) throw_invalid("flatten", "x with at least one axis", describe(x.value));
  std::int64_t width = 1;
  for (int axis = 1; axis < x.value.extents().rank(); ++axis) width *= x.value.extents()[axis];
  auto y = x.value.reshape({x.value.extents()[0], width});
  if (!x.recorder) return {std::move(y)};
  return x.recorder->record(std::move(y), {x}, std::make_unique<flatten_operation>(x.value.extents()));
}

variable add(const variable& a, const variable& b) {
  auto y = add(a.value, b.value);
  if (a.recorder != b.recorder) throw_invalid("add", "two variables of one tape", "variables of two");
  if (!a.recorder) return {std::move(y)};
  return a.recorder->record(std::move(y), {a, b}, std::make_unique<add_operation>());
}

variable to_float(const variable& x, float scale) {
  if (is_recorded(x)) throw_invalid("to_float", "an input of which no gradient is wanted", describe(x.value));
  return {to_float(x.value, scale), x.recorder, x.node};
}

loss_result cross_entropy(const variable& logits, const tensor& labels, double gradient_scale) {
  auto result = cross_entropy_forward(logits.value, labels);
  variable loss{tensor::full({}, static_cast<float>(gradient_scale * result.loss_sum))};
  if (logits.recorder)
    loss = logits.recorder->record(
        loss.value, {logits},
        std::make_unique<cross_entropy_operation>(logits.value, labels, gradient_scale));
  return {std::move(loss), result.loss_sum, result.num_correct};
}

}  // namespace troupe
