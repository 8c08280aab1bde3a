#include "troupe/ops/elementwise.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

class add_operation : public operation {
 public:
  std::vector<tensor> backward_input(const tensor& dy) override { return {dy, dy}; }
};

}  // namespace

variable add(const variable& a, const variable& b) {
  return record(add(a.value, b.value), {a, b}, std::make_unique<add_operation>());
}

variable to_float(const variable& x, float scale) {
  if (x.requires_gradient())
    throw_invalid("to_float", "an input of which no gradient is wanted", describe(x.value));
  return {to_float(x.value, scale), nullptr};
}

}  // namespace troupe
