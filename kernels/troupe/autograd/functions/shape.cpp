#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/functions/one_input.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/elementwise.hpp"

namespace troupe {

variable reshape(const variable& x, shape extents) {
  return record_one_input(x, x.value.reshape(std::move(extents)),
                          [before = x.value.shape()](const tensor& dy) { return dy.reshape(before); });
}

variable broadcast_to(const variable& x, const shape& extents) {
  return record_one_input(x, broadcast_to(x.value, extents), [before = x.value.shape()](const tensor& dy) {
    return reduce_to_shape(dy, before);
  });
}

variable flatten(const variable& x) {
  if (x.value.shape().rank() < 1) throw_invalid("flatten", "x with at least one axis", describe(x.value));
  std::int64_t width = 1;
  for (int axis = 1; axis < x.value.shape().rank(); ++axis) width *= x.value.shape()[axis];
  return reshape(x, {x.value.shape()[0], width});
}

}  // namespace troupe
