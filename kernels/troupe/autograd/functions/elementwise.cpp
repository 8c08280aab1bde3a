#include "troupe/ops/elementwise.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"

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

}  // namespace troupe
