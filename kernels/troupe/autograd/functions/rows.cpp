#include "troupe/ops/rows.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/functions/one_input.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

class scatter_add_operation : public operation {
 public:
  scatter_add_operation(tensor indices, dtype rows_type) : indices_(std::move(indices)), type_(rows_type) {}
  std::vector<tensor> backward_input(const tensor& dy) override {
    return {dy, cast(gather_rows(dy, indices_), type_)};
  }

 private:
  tensor indices_;
  dtype type_;
};

}  // namespace

variable gather_rows(const variable& values, const tensor& indices) {
  auto gradient = [indices, extents = values.value.shape(), type = values.value.dtype()](const tensor& dy) {
    auto sum = tensor::empty(extents, dtype::f32, dy.device());
    scatter_add_rows(indices, dy, sum, gradient_mode::assign);
    return cast(sum, type);
  };
  return record_one_input(values, gather_rows(values.value, indices), gradient);
}

variable scatter_add_rows(const variable& sum, const tensor& indices, const variable& rows) {
  auto y = sum.value.clone();
  scatter_add_rows(indices, rows.value, y);
  return record(y, {sum, rows}, std::make_unique<scatter_add_operation>(indices, rows.value.dtype()));
}

}  // namespace troupe
