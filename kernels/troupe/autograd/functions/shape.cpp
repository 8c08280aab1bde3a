#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

class reshape_operation : public operation {
 public:
  explicit reshape_operation(shape extents) : extents_(std::move(extents)) {}
  std::vector<tensor> backward_input(const tensor& dy) override { return {dy.reshape(extents_)}; }

 private:
  shape extents_;
};

}  // namespace

variable reshape(const variable& x, shape extents) {
  return record(x.value.reshape(std::move(extents)), {x},
                std::make_unique<reshape_operation>(x.value.extents()));
}

variable flatten(const variable& x) {
  if (x.value.extents().rank() < 1) throw_invalid("flatten", "x with at least one axis", describe(x.value));
  std::int64_t width = 1;
  for (int axis = 1; axis < x.value.extents().rank(); ++axis) width *= x.value.extents()[axis];
  return reshape(x, {x.value.extents()[0], width});
}

}  // namespace troupe
