#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/used_parameter.hpp"

namespace troupe {
namespace {

class learned_operation : public operation {
 public:
  explicit learned_operation(parameter& which) : which_(&which) {}

  std::vector<tensor> backward_input(const tensor&) override {
    which_.require_unchanged();  // operations over it have kept its value
    return {};
  }
  void backward_weight(const tensor& dy) override { add_gradient(*which_.target(), dy); }
  std::vector<parameter*> parameters() const override { return wanted_of({which_.target()}); }

 private:
  used_parameter which_;
};

}  // namespace

variable learned(parameter& which) {
  make_ready({&which});
  if (!would_record({}, {&which})) return {which.value()};
  return record(which.value(), {}, std::make_unique<learned_operation>(which));
}

}  // namespace troupe
