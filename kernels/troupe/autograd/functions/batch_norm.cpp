#include "troupe/ops/batch_norm.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"

namespace troupe {
namespace {

class batch_norm_operation : public operation {
 public:
  batch_norm_operation(tensor x, const batch_norm_result& made, parameter& weight, parameter& bias)
      : x_(std::move(x)), mean_(made.mean), rstd_(made.rstd), weight_(weight), bias_(bias) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    return {batch_norm_backward_input(dy, x_, weight_.value, mean_, rstd_)};
  }
  void backward_weight(const tensor& dy) override {
    auto mode = begin_gradients({&weight_, &bias_});
    batch_norm_backward_weight(x_, dy, mean_, rstd_, weight_.gradient, bias_.gradient, mode);
  }
  std::vector<parameter*> parameters() const override { return wanted_of({&weight_, &bias_}); }

 private:
  tensor x_, mean_, rstd_;
  parameter& weight_;
  parameter& bias_;
};

}  // namespace

variable batch_norm(const variable& x, parameter& weight, parameter& bias, const tensor& running_mean,
                    const tensor& running_variance, const batch_norm_options& options) {
  auto made = batch_norm_forward(x.value, weight.value, bias.value, running_mean, running_variance, options);
  if (!would_record({&x}, {&weight, &bias})) return {made.y};
  return record(made.y, {x}, std::make_unique<batch_norm_operation>(x.value, made, weight, bias));
}

}  // namespace troupe
