#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/saved_parameter.hpp"

namespace troupe {
namespace {

class learned_operation : public operation {
 public:
  explicit learned_operation(parameter& param) : which_(&param) {}

  std::vector<tensor> backward_input(const tensor&) override {
    which_.require_unchanged();  // operations over it have kept its value
    return {};
  }
  void backward_weight(const tensor& dy) override { add_gradient(*which_.target(), dy); }
  std::vector<parameter*> parameters() const override { return trainable_parameters({which_.target()}); }

 private:
  saved_parameter which_;
};

}  // namespace

variable as_variable(parameter& param) {
  make_ready({&param});
  if (!would_record({}, {&param})) return {param.value()};
  return record(param.value(), {}, std::make_unique<learned_operation>(param));
}

}  // namespace troupe
