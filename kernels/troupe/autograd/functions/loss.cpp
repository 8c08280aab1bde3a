#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/cross_entropy.hpp"

namespace troupe {
namespace {

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
    if (dy.type() != dtype::f32 || dy.num_elements() != 1)
      throw_invalid("cross_entropy", "a scalar f32 gradient", describe(dy));
    return {cross_entropy_backward(logits_, labels_, log_sum_exp_, scale_ * dy.values<float>()[0], options_)};
  }

 private:
  tensor logits_, labels_, log_sum_exp_;
  double scale_;
  cross_entropy_options options_;
};

}  // namespace

loss_result cross_entropy(const variable& logits, const tensor& labels, double gradient_scale,
                          const cross_entropy_options& options) {
  auto result = cross_entropy_forward(logits.value, labels, options);
  auto loss = record(tensor::full({}, static_cast<float>(gradient_scale * result.loss_sum)), {logits},
                     std::make_unique<cross_entropy_operation>(logits.value, labels, result.log_sum_exp,
                                                               gradient_scale, options));
  return {std::move(loss), result.loss_sum, result.num_correct, result.num_counted, result.device_loss_sum};
}

}  // namespace troupe
