#include "troupe/ops/rows.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

void require_rows(std::string_view operation, std::string_view argument, const tensor& value) {
  if (!value.defined() || value.shape().rank() < 1)
    throw_invalid(operation, std::string(argument) + " with at least one axis", describe(value));
}

}  // namespace

tensor gather_rows(const tensor& values, const tensor& indices) {
  require_rows("gather_rows", "values", values);
  require_indices("gather_rows", indices, values.device());
  auto out = tensor::empty(gathered_extents(values, indices), values.dtype(), values.device());
  kernels_on(values.device()).rows.gather("gather_rows", values, indices, out);
  return out;
}

void scatter_add_rows(const tensor& indices, const tensor& rows, tensor sum, gradient_mode mode) {
  require_rows("scatter_add_rows", "sum", sum);
  require_argument("scatter_add_rows", "sum", sum, dtype::f32, sum.shape());
  require_indices("scatter_add_rows", indices, sum.device());
  require_floating("scatter_add_rows", "rows", rows);
  require_argument("scatter_add_rows", "rows", rows, rows.dtype(), gathered_extents(sum, indices),
                   sum.device());
  kernels_on(sum.device()).rows.scatter_add("scatter_add_rows", indices, rows, sum, mode);
}

}  // namespace troupe
