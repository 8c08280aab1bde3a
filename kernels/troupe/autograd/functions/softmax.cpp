#include "troupe/ops/softmax.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"

namespace troupe {
namespace {

class softmax_operation : public operation {
 public:
  softmax_operation(tensor (*gradient)(const tensor& dy, const tensor& y), tensor y)
      : gradient_(gradient), y_(std::move(y)) {}
  std::vector<tensor> backward_input(const tensor& dy) override { return {gradient_(dy, y_)}; }

 private:
  tensor (*gradient_)(const tensor& dy, const tensor& y);
  tensor y_;
};

}  // namespace

variable softmax(const variable& x) {
  auto y = softmax_forward(x.value);
  return record(y, {x}, std::make_unique<softmax_operation>(softmax_backward, y));
}

variable log_softmax(const variable& x) {
  auto y = log_softmax_forward(x.value);
  return record(y, {x}, std::make_unique<softmax_operation>(log_softmax_backward, y));
}

}  // namespace troupe
