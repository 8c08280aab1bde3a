#include "troupe/ops/activation.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"

namespace troupe {
namespace {

class relu_operation : public operation {
 public:
  explicit relu_operation(tensor y) : y_(std::move(y)) {}
  std::vector<tensor> backward_input(const tensor& dy) override { return {relu_backward(dy, y_)}; }

 private:
  tensor y_;
};

}  // namespace

variable relu(const variable& x) {
  auto y = relu_forward(x.value);
  if (!would_record({&x})) return {std::move(y), nullptr};
  return record(y, {x}, std::make_unique<relu_operation>(y));
}

}  // namespace troupe
