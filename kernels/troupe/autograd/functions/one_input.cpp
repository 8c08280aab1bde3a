#include "troupe/autograd/functions/one_input.hpp"

#include <utility>

namespace troupe {
namespace {

class one_input_operation : public operation {
 public:
  explicit one_input_operation(std::function<tensor(const tensor& dy)> gradient)
      : gradient_(std::move(gradient)) {}
  std::vector<tensor> backward_input(const tensor& dy) override { return {gradient_(dy)}; }

 private:
  std::function<tensor(const tensor& dy)> gradient_;
};

}  // namespace

variable record_one_input(const variable& x, tensor y, std::function<tensor(const tensor& dy)> gradient) {
  if (!would_record({&x})) return {std::move(y)};
  return record(std::move(y), {x}, std::make_unique<one_input_operation>(std::move(gradient)));
}

}  // namespace troupe
